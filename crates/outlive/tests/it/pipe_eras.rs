//! Both eras on one pipe, and the handshakes of all revisions.

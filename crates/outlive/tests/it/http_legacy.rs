//! Handshake, sessions, GET, DELETE, batches and isolation of the initialize-era revisions.

//! What older revisions are spared.

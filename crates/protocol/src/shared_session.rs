//! The shared identity of a session.

use std::{sync::Arc, time::Duration};

/// The shared identity of a session, known to all replicas.
#[derive(Debug)]
#[non_exhaustive]
pub struct SharedSession {
    /// Session ID. A credential: do not store or log it in plain text.
    pub id: Arc<str>,
    /// Time that the store keeps an unused session.
    pub ttl: Duration,
}

impl SharedSession {
    pub(crate) fn new(id: Arc<str>, ttl: Duration) -> Self {
        Self { id, ttl }
    }
}

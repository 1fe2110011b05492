//! The name under which all replicas know a session.

use std::{sync::Arc, time::Duration};

/// The name under which all replicas know a session.
#[derive(Debug)]
#[non_exhaustive]
pub struct SharedSession {
    /// Its ID. A credential: do not store or log it as it is.
    pub id: Arc<str>,
    /// How long the store keeps the session when no client uses it.
    pub ttl: Duration,
}

impl SharedSession {
    pub(crate) fn new(id: Arc<str>, ttl: Duration) -> Self {
        Self { id, ttl }
    }
}

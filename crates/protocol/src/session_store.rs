//! Storage of legacy sessions that all replicas of a server share.
//!
//! A client may use a session on another replica than the one that opened it: behind a load
//! balancer, or after a restart. Transports query the [`SessionStore`] for unknown sessions, and
//! regularly for known sessions, because another replica may have ended them.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::{ClientReply, Principal, Session};

/// Storage for sessions that all replicas share. Its sessions must have a shared ID: see
/// [`Session::share`].
pub trait SessionStore: Send + Sync {
    /// Stores a new session. Every replica can load it once the future completes.
    fn insert<'a>(&'a self, session: &'a Session) -> SessionStoreFuture<'a, ()>;

    /// Loads a session. Returns `None` if it does not exist or belongs to another principal.
    fn load<'a>(
        &'a self,
        id: &'a str,
        principal: &'a Principal,
    ) -> SessionStoreFuture<'a, Option<Arc<Session>>>;

    /// Synchronizes a session with its stored state, in both directions. Returns whether the
    /// session still exists. `refresh` restarts its TTL.
    fn refresh<'a>(&'a self, session: &'a Session, refresh: bool) -> SessionStoreFuture<'a, bool>;

    /// Ends a session on all replicas.
    fn delete<'a>(&'a self, session: &'a Session) -> SessionStoreFuture<'a, ()>;

    /// Forwards a client's response to the replica that sent the request.
    fn forward_reply(&self, reply: MisroutedReply) -> SessionStoreFuture<'_, ()>;
}

/// The future that a session store returns.
pub type SessionStoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

/// The session store is unavailable. The error says nothing about the session.
#[derive(Clone, Debug)]
pub struct SessionStoreError {
    reason: String,
    limit: Option<&'static str>,
}

impl SessionStoreError {
    /// Creates an error with a reason.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), limit: None }
    }

    /// Creates an error for a limit that the client exceeded.
    pub fn over_limit(limit: &'static str, reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), limit: Some(limit) }
    }

    /// Returns the limit that the client exceeded, if that is the cause.
    pub fn limit(&self) -> Option<&'static str> {
        self.limit
    }
}

impl fmt::Display for SessionStoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for SessionStoreError {}

/// A client's response to a request that another replica may have sent.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "a response and its request")]
pub struct MisroutedReply {
    /// Session of the request.
    pub session: Arc<Session>,
    /// Request ID.
    pub id: u64,
    /// The response.
    pub reply: ClientReply,
}

//! Where legacy sessions are kept so that every replica of a server knows them.
//!
//! A session is opened by one process and may be used in another: behind a proxy that spreads
//! requests, or after a restart. A [`SessionStore`] is what the processes share. Transports ask it
//! about sessions they do not know, and now and then about those they do, since another replica may
//! have ended them.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::{ClientReply, Principal, Session};

/// Keeps sessions where all replicas find them. What it is given must be portable: see
/// [`Session::share`].
pub trait SessionStore: Send + Sync {
    /// Keeps a session that has just been opened. When it answers, every replica finds it.
    fn insert<'a>(&'a self, session: &'a Session) -> SessionStoreFuture<'a, ()>;

    /// The session with this id, if there is one and it is this principal's.
    fn load<'a>(
        &'a self,
        id: &'a str,
        principal: &'a Principal,
    ) -> SessionStoreFuture<'a, Option<Arc<Session>>>;

    /// Whether a session that is known here is still there, and brings both up to date: what other
    /// replicas were told is told to the session, and what it was told itself is kept. `refresh`
    /// keeps it for its whole time from now on.
    fn refresh<'a>(&'a self, session: &'a Session, refresh: bool) -> SessionStoreFuture<'a, bool>;

    /// Ends a session for all replicas.
    fn delete<'a>(&'a self, session: &'a Session) -> SessionStoreFuture<'a, ()>;

    /// Takes a client's answer to a request that another replica may have made.
    fn forward_reply(&self, stray: MisroutedReply) -> SessionStoreFuture<'_, ()>;
}

/// What a keeper returns: a future of a result.
pub type SessionStoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, SessionStoreError>> + Send + 'a>>;

/// The keeper cannot be asked now. That says nothing about any session.
#[derive(Clone, Debug)]
pub struct SessionStoreError {
    reason: String,
    limit: Option<&'static str>,
}

impl SessionStoreError {
    /// Says why.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), limit: None }
    }

    /// The client has used up a limit: its name, and what it did.
    pub fn over_limit(limit: &'static str, reason: impl fmt::Display) -> Self {
        Self { reason: reason.to_string(), limit: Some(limit) }
    }

    /// The limit that the client has used up, if that is why.
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

/// A client's answer that nobody waits for here, but perhaps on another replica.
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "an answer, and what it belongs to")]
pub struct MisroutedReply {
    /// The session in which it was asked.
    pub session: Arc<Session>,
    /// The id of the request.
    pub id: u64,
    /// The answer.
    pub reply: ClientReply,
}

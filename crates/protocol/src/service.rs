//! The interface that a server implements for the transports.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::{Method, RawJson};

use crate::{Call, CallFuture, Principal, Profile, Session, SessionStore};

/// A server, as transports see it. The server API implements it.
pub trait Service: SessionEvents + ExternalEvents + Send + Sync + 'static {
    /// Returns the static description and settings of the server.
    fn profile(&self) -> &Arc<Profile>;

    /// Returns whether the application handles a custom method.
    fn knows_method(&self, name: &str) -> bool;

    /// Starts to handle a call. Must not block.
    fn start(self: Arc<Self>, call: Arc<Call>) -> CallFuture;

    /// Receives a notification that the protocol core does not handle itself.
    fn notified(&self, notice: ClientNotification<'_>);

    /// Shuts down before a transport stops. `calls` completes when the transport has no calls left.
    /// Tasks that run without a caller have `patience` to reach a point where another worker can
    /// resume them. This includes calls that become tasks during the shutdown.
    fn shut_down(
        self: Arc<Self>,
        calls: Pin<Box<dyn Future<Output = ()> + Send>>,
        patience: Duration,
    ) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Hooks for legacy sessions.
pub trait SessionEvents {
    /// Called after a legacy session was opened.
    fn session_opened(&self, session: &Arc<Session>);

    /// Called after a legacy session ended.
    fn session_closed(&self, session: &Arc<Session>);

    /// Returns the session store that all replicas share; `None` if sessions are local to the
    /// process.
    fn session_store(&self) -> Option<&dyn SessionStore> {
        None
    }
}

/// Hooks for external events.
pub trait ExternalEvents {
    /// Returns whether this server issued a completion token. Cheap: a transport calls it before it
    /// reads the value.
    fn knows_token(&self, token: &str) -> bool;

    /// Stores the value that another system delivers for a token.
    fn complete(
        self: Arc<Self>,
        token: &str,
        value: RawJson,
    ) -> Pin<Box<dyn Future<Output = CompletionOutcome> + Send>>;
}

/// The result of delivering a value for an external event.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionOutcome {
    /// The value was stored.
    Taken,
    /// The event already has a value, or no task waits for it. The value was not stored.
    TooLate,
    /// The server did not issue the token.
    Unknown,
    /// The store is unavailable; retry later.
    Unavailable(String),
}

/// A notification from a client.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClientNotification<'a> {
    /// Method; `None` for a custom method.
    pub method: Option<Method>,
    /// Name of the method.
    pub name: &'a str,
    /// Parameters: the JSON text of an object.
    pub params: &'a str,
    /// Principal of the sender.
    pub principal: &'a Principal,
    /// Legacy session of the sender.
    pub session: Option<&'a Arc<Session>>,
}

impl<'a> ClientNotification<'a> {
    pub(crate) fn new(
        method: Option<Method>,
        name: &'a str,
        params: &'a str,
        principal: &'a Principal,
        session: Option<&'a Arc<Session>>,
    ) -> Self {
        Self { method, name, params, principal, session }
    }
}

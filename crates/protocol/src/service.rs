//! What a server is to the floors below it: something that answers calls.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::{Method, RawJson};

use crate::{Call, CallFuture, Principal, Profile, Session, SessionStore};

/// A server, as transports see it. The server API implements it.
pub trait Service: SessionEvents + ExternalEvents + Send + Sync + 'static {
    /// Who we are and what we accept.
    fn profile(&self) -> &Arc<Profile>;

    /// Whether the application handles a method that no era names.
    fn knows_method(&self, name: &str) -> bool;

    /// Starts the work that answers a call. Must not block.
    fn start(self: Arc<Self>, call: Arc<Call>) -> CallFuture;

    /// Takes a notification that the protocol floor has no use for itself.
    fn notified(&self, notice: ClientNotification<'_>);

    /// A transport stops to serve. What goes on without a caller has so long to come to a place
    /// where somebody else can go on.
    fn shut_down(self: Arc<Self>, patience: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// What a server does about legacy sessions.
pub trait SessionEvents {
    /// A legacy session has been opened.
    fn session_opened(&self, session: &Arc<Session>);

    /// A legacy session has ended.
    fn session_closed(&self, session: &Arc<Session>);

    /// Where legacy sessions are kept for all replicas; `None` if each process has its own.
    fn keeper(&self) -> Option<&dyn SessionStore> {
        None
    }
}

/// What a server does about external events.
pub trait ExternalEvents {
    /// Returns whether a completion token is one of this server. Cheap: a transport calls it before it
    /// reads the value.
    fn knows_token(&self, token: &str) -> bool;

    /// Stores the value that another system delivers.
    fn complete(
        self: Arc<Self>,
        token: &str,
        value: RawJson,
    ) -> Pin<Box<dyn Future<Output = CompletionOutcome> + Send>>;
}

/// What became of something that was said from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompletionOutcome {
    /// It is stored, and whoever waits will see it.
    Taken,
    /// Something was said before, or nobody waits any more. It is not stored.
    TooLate,
    /// The token is none of ours.
    Unknown,
    /// It could not be stored; say it again later.
    Unavailable(String),
}

/// A notification from a client.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ClientNotification<'a> {
    /// Its method, if the specification names it.
    pub method: Option<Method>,
    /// Its name.
    pub name: &'a str,
    /// Its parameters: the JSON text of an object.
    pub params: &'a str,
    /// Who sent it.
    pub principal: &'a Principal,
    /// The legacy session it came in on, if there is one.
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

//! What a server is to the floors below it: something that answers calls.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use outlive_wire::{Implementation, Method, RawJson};

use crate::{
    Call, ChangeBus, Clock, Gauge, Limits, Principal, Seal, Session, SessionStore, era::VersionSet,
    run::CallFuture,
};

/// Something that answers calls. The server API implements it; transports hold it.
pub trait Service: Send + Sync + 'static {
    /// Who we are and what we accept.
    fn profile(&self) -> &Arc<Profile>;

    /// Whether the application handles a method that no era names.
    fn knows_method(&self, name: &str) -> bool;

    /// Starts the work that answers a call. Must not block.
    fn start(self: Arc<Self>, call: Arc<Call>) -> CallFuture;

    /// Takes a notification that the protocol floor has no use for itself.
    fn notified(&self, notice: ClientNotification<'_>);

    /// A legacy session has been opened.
    fn session_opened(&self, session: &Arc<Session>);

    /// A legacy session has ended.
    fn session_closed(&self, session: &Arc<Session>);

    /// Where legacy sessions are kept for all replicas; `None` if each process has its own.
    fn keeper(&self) -> Option<&dyn SessionStore> {
        None
    }

    /// Whether a completion token is one of ours. Cheap: asked before the value is read.
    fn knows_token(&self, token: &str) -> bool;

    /// Somebody outside says what came of something that is waited for.
    fn complete(
        self: Arc<Self>,
        token: &str,
        value: RawJson,
    ) -> Pin<Box<dyn Future<Output = CompletionOutcome> + Send>>;

    /// A transport stops to serve. What goes on without a caller has so long to come to a place
    /// where somebody else can go on.
    fn shut_down(self: Arc<Self>, patience: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
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

/// What stays the same about a server for as long as it runs.
pub struct Profile {
    /// Name and version.
    pub info: Implementation,
    /// Which eras are served.
    pub eras: VersionSet,
    /// What is accepted and kept.
    pub limits: Limits,
    /// Where time comes from.
    pub clock: Arc<dyn Clock>,
    /// Who hears of changes.
    pub bus: ChangeBus,
    /// Nothing is told on it. It closes when the calls that still run are to be given up, because the
    /// process ends.
    pub cutoff: ChangeBus,
    /// Seals what clients carry for us.
    pub seal: Seal,
    /// How many streams are open.
    pub streams: Gauge,
    /// What stands at the head of every modern result, serialised once.
    pub(crate) modern_stamp: Box<str>,
}

impl Profile {
    /// Puts a profile together. `stamp_identity` puts `serverInfo` on every modern result, as the
    /// specification recommends.
    pub fn new(
        info: Implementation,
        eras: VersionSet,
        limits: Limits,
        clock: Arc<dyn Clock>,
        seal: Seal,
        stamp_identity: bool,
    ) -> Self {
        let modern_stamp = crate::era::modern_stamp(&info, stamp_identity);
        Self {
            info,
            eras,
            limits,
            clock,
            bus: ChangeBus::default(),
            cutoff: ChangeBus::default(),
            seal,
            streams: Gauge::default(),
            modern_stamp,
        }
    }
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Profile")
            .field("info", &self.info)
            .field("eras", &self.eras)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

//! One open upstream connection: the client, its calls and its background tasks.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use outlive::{
    client::{Client, Error, ServerInfo, Version, relay::CapabilityClass},
    server::durable::Capacity,
    wire::LoggingLevel,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::{AbortHandle, JoinSet},
};

use super::{
    carrier::Carrier,
    key::{Alive, CatalogKey, ConnectionKey},
    offered::Offered,
    process_limit::ProcessPlace,
    supervised::Supervised,
    token_check::TokenCheck,
};
use crate::settings::Upstream;

/// Calls that wait for one upstream connection.
pub(super) const MAX_WAITING: usize = 256;

/// Setting that bounds the calls on one upstream connection.
pub(super) const MAX_CONCURRENT: &str = "max_concurrent";

/// Returns the name of the limit for clients.
fn permit_name(upstream: &str) -> String {
    format!("{MAX_CONCURRENT} of upstream `{upstream}`")
}

/// An open upstream connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) key: ConnectionKey,
    pub(crate) client: Client,
    pub(crate) version: Version,
    is_legacy: bool,
    pub(crate) offered: Offered,
    instructions: Option<String>,
    pub(crate) carrier: Arc<Carrier>,
    /// Present for a process that survives the gateway.
    pub(super) supervised: Option<Arc<Supervised>>,
    place: Option<ProcessPlace>,
    pub(super) alive: Alive,
    /// Permits of the calls that run.
    pub(super) permits: Capacity,
    pub(super) waiting: AtomicUsize,
    usage: Mutex<Usage>,
    /// Subscriptions, which prevent the idle stop.
    subscriptions: AtomicUsize,
    closed: AtomicBool,
    /// Whether the session stays at the upstream when the connection closes, because a run continues
    /// its stream.
    leaves_session: AtomicBool,
    /// Time of the last list, if the upstream does not notify of changes.
    unwatched: Mutex<Option<Instant>>,
    log_level: Mutex<Option<LoggingLevel>>,
    /// Tokens of the principal, if the credential belongs to it.
    tokens: Option<TokenCheck>,
    /// Calls that wait until the notifications before their outcome are routed.
    flushes: mpsc::Sender<oneshot::Sender<()>>,
    flushed: Mutex<Option<mpsc::Receiver<oneshot::Sender<()>>>>,
    background: Mutex<JoinSet<()>>,
}

/// Calls that wait for notifications at the same time. Further ones wait for a place.
const MAX_FLUSHES: usize = 64;

#[derive(Debug)]
struct Usage {
    calls: usize,
    idle_since: Instant,
}

/// Description of an upstream, from the time when a connection was opened.
#[derive(Debug)]
pub(super) struct Server {
    version: Version,
    is_legacy: bool,
    offered: Offered,
    instructions: Option<String>,
}

impl Server {
    pub(super) fn new(version: Version, is_legacy: bool, info: &ServerInfo) -> Self {
        let instructions = info.instructions.clone();
        Self { version, is_legacy, offered: Offered::new(info), instructions }
    }
}

impl Connection {
    pub(super) fn new(
        key: ConnectionKey,
        client: Client,
        server: Server,
        place: Option<ProcessPlace>,
        settings: &Upstream,
        alive: Alive,
    ) -> Self {
        let max_concurrent = settings.max_concurrent;
        // Over Streamable HTTP input requests arrive on the stream of their call, so a shared
        // connection needs no guesses either.
        let guesses = !key.is_shared() || max_concurrent == 1;
        let (flushes, flushed) = mpsc::channel(MAX_FLUSHES);
        Self {
            key,
            client,
            version: server.version,
            is_legacy: server.is_legacy,
            offered: server.offered,
            instructions: server.instructions,
            carrier: Carrier::new(guesses),
            supervised: None,
            place,
            alive,
            permits: Capacity::new(permit_name(settings.name()), max_concurrent),
            waiting: AtomicUsize::new(0),
            usage: Mutex::new(Usage { calls: 0, idle_since: Instant::now() }),
            subscriptions: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            leaves_session: AtomicBool::new(false),
            unwatched: Mutex::default(),
            log_level: Mutex::default(),
            tokens: None,
            flushes,
            flushed: Mutex::new(Some(flushed)),
            background: Mutex::default(),
        }
    }

    /// Sets the tokens of the principal.
    pub(super) fn with_tokens(mut self, tokens: Option<TokenCheck>) -> Self {
        self.tokens = tokens;
        self
    }

    /// Returns the error if the principal has no token for the next request. Always `None` if the
    /// credential does not belong to the principal.
    pub(crate) async fn missing_token(&self) -> Option<Error> {
        self.tokens.as_ref()?.check().await.err()
    }

    /// Returns the capability class that the connection declares.
    pub(crate) fn class(&self) -> CapabilityClass {
        self.key.class
    }

    /// Returns the key of the catalog that is read over the connection.
    pub(crate) fn catalog(&self) -> CatalogKey {
        self.key.catalog()
    }

    /// Returns whether the upstream needs a handshake and sends its input requests as requests.
    pub(crate) fn is_legacy(&self) -> bool {
        self.is_legacy
    }

    /// Returns the process behind its supervisor, if it survives the gateway.
    pub(crate) fn supervised(&self) -> Option<&Arc<Supervised>> {
        self.supervised.as_ref()
    }

    /// Returns whether new calls can use the connection.
    pub(super) fn serves_new_calls(&self) -> bool {
        self.supervised.as_ref().is_none_or(|supervised| supervised.serves_new_calls())
    }

    /// Returns the instructions of the upstream for models.
    pub(crate) fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    pub(super) fn is_process(&self) -> bool {
        self.place.is_some()
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.closed.load(Ordering::Acquire)
    }

    /// Returns whether the session of the connection still exists.
    pub(crate) fn alive(&self) -> Alive {
        self.alive.clone()
    }

    /// Marks the connection as unusable for new calls.
    pub(crate) fn retire(&self) {
        self.closed.store(true, Ordering::Release);
        // Calls that wait for a permit use another connection.
        self.permits.set_max(usize::MAX);
    }

    /// Starts a background task that ends with the connection.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        self.background.lock().unwrap_or_else(PoisonError::into_inner).spawn(task)
    }

    pub(super) fn begin_call(&self) {
        self.usage().calls += 1;
    }

    pub(super) fn end_call(&self) {
        let mut usage = self.usage();
        usage.calls = usage.calls.saturating_sub(1);
        usage.idle_since = Instant::now();
        let is_idle = usage.calls == 0;
        drop(usage);
        if let Some(place) = self.place.as_ref().filter(|_| is_idle) {
            // The process can be stopped for another one.
            place.wake();
        }
    }

    pub(crate) fn calls(&self) -> usize {
        self.usage().calls
    }

    /// Adds or removes a subscription.
    pub(crate) fn subscribe(&self, adds: bool) {
        match adds {
            true => self.subscriptions.fetch_add(1, Ordering::AcqRel),
            false => self.subscriptions.fetch_sub(1, Ordering::AcqRel),
        };
        self.usage().idle_since = Instant::now();
    }

    /// Returns how long the connection has been without a call and a subscription.
    pub(crate) fn idle(&self, now: Instant) -> Option<Duration> {
        let usage = self.usage();
        let is_idle = usage.calls == 0 && self.subscriptions.load(Ordering::Acquire) == 0;
        is_idle.then(|| now.saturating_duration_since(usage.idle_since))
    }

    /// Records that the upstream does not notify of changed lists.
    pub(super) fn set_unwatched(&self) {
        let mut listed = self.unwatched.lock().unwrap_or_else(PoisonError::into_inner);
        listed.get_or_insert_with(Instant::now);
    }

    /// Returns whether the lists must be read again, because the upstream does not notify of changes
    /// and was listed an `interval` ago.
    pub(super) fn takes_relist(&self, now: Instant, interval: Duration) -> bool {
        let mut listed = self.unwatched.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = listed.as_mut() else { return false };
        if !self.is_process() {
            // Over HTTP an idle connection costs nothing, and clients listen.
            self.usage().idle_since = now;
        }
        let is_due = now.saturating_duration_since(*last) >= interval;
        if is_due {
            *last = now;
        }
        is_due
    }

    /// Forgets the log level, because the upstream started a new session.
    pub(super) fn forget_log_level(&self) -> Option<LoggingLevel> {
        self.log_level.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sets the log level at a legacy upstream if it is more verbose than the current one.
    pub(crate) async fn raise_log_level(&self, level: LoggingLevel) {
        {
            let mut current = self.log_level.lock().unwrap_or_else(PoisonError::into_inner);
            if current.is_some_and(|current| current <= level) {
                return;
            }
            *current = Some(level);
        }
        // An upstream without logging, or a modern one, has no level.
        let _ = self.client.set_log_level(level).await;
    }

    /// Leaves the session at the upstream when the connection closes: the stream of a call in it is
    /// resumed later.
    pub(crate) fn leave_session(&self) {
        self.leaves_session.store(true, Ordering::Release);
    }

    /// Waits until the log messages that a process wrote before an outcome are routed to their calls.
    /// Over HTTP they arrive on the stream of their call.
    pub(crate) async fn flush_logs(&self) {
        if !self.is_process() {
            return;
        }
        self.client.flush_notifications().await;
        let (sender, done) = oneshot::channel();
        if self.flushes.send(sender).await.is_ok() {
            // An error means that the connection has ended, and its messages with it.
            let _ = done.await;
        }
    }

    /// Returns the receiver of the calls that wait for notifications, once.
    pub(super) fn take_flushes(&self) -> Option<mpsc::Receiver<oneshot::Sender<()>>> {
        self.flushed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Closes the connection and waits for its process to exit. A process that a call of a task needs
    /// continues.
    pub(crate) async fn close(&self) {
        self.retire();
        if let Some(supervised) = &self.supervised {
            supervised.end().await;
        }
        match self.leaves_session.load(Ordering::Acquire) {
            true => self.client.close_and_leave_session().await,
            false => self.client.close().await,
        }
        let mut background =
            std::mem::take(&mut *self.background.lock().unwrap_or_else(PoisonError::into_inner));
        background.shutdown().await;
    }

    fn usage(&self) -> std::sync::MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

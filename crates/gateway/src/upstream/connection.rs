//! One open upstream connection: the client, its calls and its background tasks.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use outlive::{
    client::{Client, Version, relay::CapabilityClass},
    wire::LoggingLevel,
};
use tokio::{
    sync::Semaphore,
    task::{AbortHandle, JoinSet},
};

use super::{
    carrier::Carrier,
    key::{Alive, ConnectionKey},
    process_limit::ProcessPlace,
};

/// Calls that wait for one upstream connection.
pub(super) const MAX_WAITING: usize = 256;

/// An open upstream connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) key: ConnectionKey,
    pub(crate) client: Client,
    pub(crate) version: Version,
    is_legacy: bool,
    pub(crate) carrier: Arc<Carrier>,
    place: Option<ProcessPlace>,
    pub(super) alive: Alive,
    pub(super) permits: Arc<Semaphore>,
    pub(super) waiting: AtomicUsize,
    usage: Mutex<Usage>,
    /// Subscriptions, which prevent the idle stop.
    subscriptions: AtomicUsize,
    closed: AtomicBool,
    log_level: Mutex<Option<LoggingLevel>>,
    background: Mutex<JoinSet<()>>,
}

#[derive(Debug)]
struct Usage {
    calls: usize,
    idle_since: Instant,
}

impl Connection {
    pub(super) fn new(
        key: ConnectionKey,
        client: Client,
        (version, is_legacy): (Version, bool),
        place: Option<ProcessPlace>,
        max_concurrent: usize,
        alive: Alive,
    ) -> Self {
        // Over Streamable HTTP input requests arrive on the stream of their call, so a shared
        // connection needs no guesses either.
        let guesses = !key.is_shared() || max_concurrent == 1;
        Self {
            key,
            client,
            version,
            is_legacy,
            carrier: Carrier::new(guesses),
            place,
            alive,
            permits: Arc::new(Semaphore::new(max_concurrent)),
            waiting: AtomicUsize::new(0),
            usage: Mutex::new(Usage { calls: 0, idle_since: Instant::now() }),
            subscriptions: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            log_level: Mutex::default(),
            background: Mutex::default(),
        }
    }

    /// Returns the capability class that the connection declares.
    pub(crate) fn class(&self) -> CapabilityClass {
        self.key.class
    }

    /// Returns whether the upstream needs a handshake and sends its input requests as requests.
    pub(crate) fn is_legacy(&self) -> bool {
        self.is_legacy
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

    /// Closes the connection and waits for its process to exit.
    pub(crate) async fn close(&self) {
        self.retire();
        self.client.close().await;
        let mut background =
            std::mem::take(&mut *self.background.lock().unwrap_or_else(PoisonError::into_inner));
        background.shutdown().await;
    }

    fn usage(&self) -> std::sync::MutexGuard<'_, Usage> {
        self.usage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

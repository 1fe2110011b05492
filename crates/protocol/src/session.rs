//! The state of a legacy session.
//!
//! Only the legacy era uses it: a modern request on the same connection is self-contained.

use std::{
    any::{Any, TypeId},
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive_wire::LoggingLevel;

use crate::{ChangeFeed, InFlight, PendingRequests, Principal, SharedSession, VersionRules};

/// The session of one legacy client: a stdio connection, an HTTP+SSE stream, or an
/// `Mcp-Session-Id`.
pub struct Session {
    rules: &'static VersionRules,
    principal: Principal,
    client_info: Option<Box<str>>,
    client_capabilities: Box<str>,
    initialized: AtomicBool,
    // An index into `LoggingLevel::ALL`. Atomic, so that log calls read it without a lock.
    log_level: AtomicU8,
    feed: ChangeFeed,
    // Created on first use, because most sessions are idle.
    in_flight: OnceLock<Arc<InFlight>>,
    asked: OnceLock<Arc<PendingRequests>>,
    portable: OnceLock<Box<SharedSession>>,
    /// Number of changes that other replicas must know.
    revision: AtomicU64,
    // A BTreeMap: an empty one is smaller than a hash map.
    state: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Session {
    /// Creates a session. `client_info` and `client_capabilities` are JSON objects.
    pub fn new(
        rules: &'static VersionRules,
        principal: Principal,
        client_info: Option<Box<str>>,
        client_capabilities: Box<str>,
        feed: ChangeFeed,
    ) -> Self {
        Self {
            rules,
            principal,
            client_info,
            client_capabilities,
            initialized: AtomicBool::new(false),
            log_level: AtomicU8::new(level_index(LoggingLevel::Info)),
            feed,
            in_flight: OnceLock::new(),
            asked: OnceLock::new(),
            portable: OnceLock::new(),
            revision: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Returns the rules of the negotiated version.
    pub fn rules(&self) -> &'static VersionRules {
        self.rules
    }

    /// Returns the principal that opened the session. No other principal can use it.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Returns the client info: the JSON text of an `Implementation`.
    pub fn client_info(&self) -> Option<&str> {
        self.client_info.as_deref()
    }

    /// Returns the JSON text of the client capabilities.
    pub fn client_capabilities(&self) -> &str {
        &self.client_capabilities
    }

    /// Returns the lowest log level that the client receives.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        LoggingLevel::ALL.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied()
    }

    /// Sets the lowest log level that the client receives.
    pub fn set_log_level(&self, level: LoggingLevel) {
        self.log_level.store(level_index(level), Ordering::Relaxed);
    }

    /// Returns whether the client sent `notifications/initialized`.
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    /// Marks the session as initialized.
    pub fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    /// Returns the feed of changes that the client receives.
    pub fn feed(&self) -> &ChangeFeed {
        &self.feed
    }

    /// Returns the table of running calls.
    pub fn in_flight(&self) -> &Arc<InFlight> {
        self.in_flight.get_or_init(Arc::default)
    }

    /// Returns the table of running calls; `None` if no call of the session has ever been added.
    pub fn running(&self) -> Option<&InFlight> {
        self.in_flight.get().map(|running| &**running)
    }

    /// Returns the requests of the server that have no response yet.
    pub fn asked(&self) -> &Arc<PendingRequests> {
        self.asked.get_or_init(Arc::default)
    }

    /// Sets the ID and TTL under which a [`SessionStore`](crate::SessionStore) keeps the session.
    /// Call it before the server sends a request in the session.
    pub fn share(&self, id: Arc<str>, ttl: Duration) {
        let name = Arc::clone(&id);
        if self.portable.set(Box::new(SharedSession::new(id, ttl))).is_ok() {
            self.asked().begin_in_range_of(&name);
        }
    }

    /// Returns whether any replica could have used this ID for a request in this session.
    pub fn may_have_asked(&self, id: u64) -> bool {
        self.portable().is_some_and(|name| crate::pending_requests::is_in_range_of(&name.id, id))
    }

    /// Returns the shared ID; `None` if the session is local to this process.
    pub fn portable(&self) -> Option<&SharedSession> {
        self.portable.get().map(|portable| &**portable)
    }

    /// Returns the number of changes to the stored part of the session.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Records a change that other replicas must know.
    pub fn note_change(&self) {
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn set_revision(&self, revision: u64) {
        self.revision.store(revision, Ordering::Release);
    }

    /// Returns the application's state of type `T` for this session. Creates it on first use. The
    /// state is local to this process, even for shared sessions.
    pub fn state<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut state = self.lock_state();
        let slot = state.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(make()));
        Arc::clone(slot)
            .downcast()
            .unwrap_or_else(|_| unreachable!("the key of the entry is its type"))
    }

    /// Closes the session: cancels its calls, fails its pending requests and closes its feed.
    pub fn close(&self) {
        self.in_flight().cancel_all();
        self.asked().close();
        self.feed.close();
    }

    fn lock_state(&self) -> MutexGuard<'_, BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn level_index(level: LoggingLevel) -> u8 {
    LoggingLevel::ALL.iter().position(|known| *known == level).unwrap_or_default() as u8
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("version", &self.rules.version)
            .field("principal", &self.principal)
            .finish_non_exhaustive()
    }
}

//! What a legacy handshake said, remembered for the calls that follow it.
//!
//! Only the legacy era reads it: a modern request on the same pipe carries everything itself.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    },
    time::Duration,
};

use outlive_wire::LoggingLevel;

use crate::{ChangeFeed, InFlight, PendingRequests, Principal, SharedSession, VersionRules};

/// One client's legacy session: a stdio pipe, an HTTP+SSE stream, or an `Mcp-Session-Id`.
pub struct Session {
    rules: &'static VersionRules,
    principal: Principal,
    client_info: Option<Box<str>>,
    client_capabilities: Box<str>,
    initialized: AtomicBool,
    // An index into `LoggingLevel::ALL`; a byte, so that every log line can read it for nothing.
    log_level: AtomicU8,
    feed: ChangeFeed,
    in_flight: Arc<InFlight>,
    asked: Arc<PendingRequests>,
    portable: OnceLock<Box<SharedSession>>,
    /// Grows with every change that other replicas have to know of.
    revision: AtomicU64,
    state: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Session {
    /// Remembers a handshake. `client_info` and `client_capabilities` are JSON objects.
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
            in_flight: Arc::default(),
            asked: Arc::default(),
            portable: OnceLock::new(),
            revision: AtomicU64::new(0),
            state: Mutex::default(),
        }
    }

    /// Returns the rules of the version that the handshake agreed on.
    pub fn rules(&self) -> &'static VersionRules {
        self.rules
    }

    /// Who opened the session. Nobody else can use it.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// What the client calls itself: the JSON text of an `Implementation`.
    pub fn client_info(&self) -> Option<&str> {
        self.client_info.as_deref()
    }

    /// What the client can do: the JSON text of its capabilities.
    pub fn client_capabilities(&self) -> &str {
        &self.client_capabilities
    }

    /// The lowest level of log lines this client gets.
    pub fn log_level(&self) -> Option<LoggingLevel> {
        LoggingLevel::ALL.get(usize::from(self.log_level.load(Ordering::Relaxed))).copied()
    }

    /// Sets the lowest level of log lines.
    pub fn set_log_level(&self, level: LoggingLevel) {
        self.log_level.store(level_index(level), Ordering::Relaxed);
    }

    /// Whether the client has said that it is ready.
    pub fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    /// Notes that the client is ready.
    pub fn set_initialized(&self) {
        self.initialized.store(true, Ordering::Release);
    }

    /// The changes this client hears of.
    pub fn feed(&self) -> &ChangeFeed {
        &self.feed
    }

    /// The calls that are running.
    pub fn in_flight(&self) -> &Arc<InFlight> {
        &self.in_flight
    }

    /// The requests of ours that the client has not answered yet.
    pub fn asked(&self) -> &Arc<PendingRequests> {
        &self.asked
    }

    /// Gives the session the name under which a [`SessionStore`](crate::SessionStore) keeps it,
    /// and how long it is kept when nobody uses it. Before anything is asked in it.
    pub fn share(&self, id: Arc<str>, ttl: Duration) {
        let name = Arc::clone(&id);
        if self.portable.set(Box::new(SharedSession::new(id, ttl))).is_ok() {
            self.asked.begin_in_range_of(&name);
        }
    }

    /// Whether a request with this id can have been made in this session, by any replica.
    pub fn may_have_asked(&self, id: u64) -> bool {
        self.portable().is_some_and(|name| crate::pending_requests::is_in_range_of(&name.id, id))
    }

    /// What other replicas know it by; `None` for a session of this process alone.
    pub fn portable(&self) -> Option<&SharedSession> {
        self.portable.get().map(|portable| &**portable)
    }

    /// How often what is kept of it has changed.
    pub fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    /// Notes that something has changed that other replicas have to know of.
    pub fn note_change(&self) {
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn set_revision(&self, revision: u64) {
        self.revision.store(revision, Ordering::Release);
    }

    /// The application's own state of type `T` for this session, made on first use. It belongs
    /// to this process, also where the session is known to others.
    pub fn state<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        let mut state = self.lock_state();
        let slot = state.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(make()));
        Arc::clone(slot)
            .downcast()
            .unwrap_or_else(|_| unreachable!("the slot is keyed by its type"))
    }

    /// Ends everything that belongs to the session: its calls are cancelled, its feed closes.
    pub fn close(&self) {
        self.in_flight.cancel_all();
        self.asked.close();
        self.feed.close();
    }

    fn lock_state(&self) -> MutexGuard<'_, HashMap<TypeId, Arc<dyn Any + Send + Sync>>> {
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

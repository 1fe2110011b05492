//! Legacy sessions of an HTTP server, by ID.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap, HashSet},
    fmt,
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use outlive_protocol::{InFlight, Principal, Seal, Session};

use super::{
    events::{EventStore, StreamKey},
    resume::{EventIds, Stream},
};
use crate::caller::Caller;

/// Maximum number of resumable streams per session. A client opens fewer at the same time.
const STREAMS: usize = 64;

/// All sessions of this process. IDs are unguessable and valid only for their principal.
pub(super) struct Sessions {
    // An `RwLock`: read for every legacy request, written when a session opens or ends.
    open: RwLock<Open>,
    events: Arc<dyn EventStore>,
    seal: Seal,
    limits: SessionLimits,
    started: Instant,
}

/// Limits on the number and the idle time of sessions.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLimits {
    pub(super) max: usize,
    pub(super) max_per_caller: usize,
    pub(super) idle: Duration,
}

/// Open sessions, indexed by ID and by caller.
#[derive(Default)]
struct Open {
    by_id: HashMap<Arc<str>, Arc<HttpSession>>,
    by_caller: HashMap<Caller, HashSet<Arc<str>>>,
}

/// A session and its streams.
pub(super) struct HttpSession {
    pub(super) id: Arc<str>,
    pub(super) session: Arc<Session>,
    /// Caller that the session counts against.
    caller: Option<Caller>,
    seal: Seal,
    /// Time of the last use, in milliseconds since the server started.
    used: AtomicU64,
    /// Times when the session store last confirmed the session, and when its TTL was last
    /// refreshed. Unused without a session store.
    confirmed: AtomicU64,
    refreshed: AtomicU64,
    /// Number of open response streams.
    pub(super) open_streams: AtomicUsize,
    /// Number of the stream that sends the changes of the session.
    pub(super) listening: AtomicU64,
    next_stream: AtomicU64,
    // A BTreeMap: an empty one takes no memory, and the oldest stream is first.
    streams: Mutex<BTreeMap<u64, Arc<Stream>>>,
}

/// A limit on sessions is reached, and no session is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Limit for all callers together.
    Total,
    /// Limit of the caller.
    Caller,
}

/// Result of inserting a session.
#[derive(Debug)]
pub(super) enum Inserted {
    Now {
        entry: Arc<HttpSession>,
        /// Session that was ended to make room.
        ended: Option<Arc<HttpSession>>,
    },
    /// The session was already present.
    Before(Arc<HttpSession>),
}

impl Sessions {
    pub(super) fn new(
        events: Arc<dyn EventStore>,
        seal: Seal,
        limits: SessionLimits,
        now: Instant,
    ) -> Self {
        Self { open: RwLock::default(), events, seal, limits, started: now }
    }

    /// Inserts a session, unless its ID is present.
    ///
    /// If the caller is at its limit, its longest idle session ends. If the total limit is reached,
    /// the longest idle session of the caller with the most sessions ends.
    pub(super) fn insert(
        &self,
        id: Arc<str>,
        session: Arc<Session>,
        caller: Option<Caller>,
        now: Instant,
    ) -> Result<Inserted, Full> {
        let millis = self.millis(now);
        let first_stream = if session.portable().is_some() { random_first_stream() } else { 0 };
        let mut open = self.write();
        if let Some(entry) = open.by_id.get(&id) {
            // Two requests have loaded the session at the same time.
            return Ok(Inserted::Before(Arc::clone(entry)));
        }
        let entry = Arc::new(HttpSession {
            id,
            session,
            caller,
            seal: self.seal.clone(),
            used: AtomicU64::new(millis),
            confirmed: AtomicU64::new(millis),
            refreshed: AtomicU64::new(millis),
            open_streams: AtomicUsize::new(0),
            listening: AtomicU64::new(u64::MAX),
            next_stream: AtomicU64::new(first_stream),
            streams: Mutex::default(),
        });
        let is_at_limit = |caller| open.count(caller) >= self.limits.max_per_caller;
        let idlest = match &entry.caller {
            Some(caller) if is_at_limit(caller) => {
                Some(open.idlest_of(caller).ok_or(Full::Caller)?)
            }
            _ if open.by_id.len() >= self.limits.max => {
                Some(open.idlest_of_largest().ok_or(Full::Total)?)
            }
            _ => None,
        };
        let ended = idlest.and_then(|idlest| open.remove(&idlest));
        open.insert(Arc::clone(&entry));
        drop(open);
        Ok(Inserted::Now { entry, ended })
    }

    /// Returns the session with this ID if it belongs to `principal`.
    pub(super) fn get(
        &self,
        id: &str,
        principal: &Principal,
        now: Instant,
    ) -> Option<Arc<HttpSession>> {
        let entry = self.read().by_id.get(id).cloned()?;
        if entry.session.principal() != principal {
            return None;
        }
        entry.used.store(self.millis(now), Ordering::Relaxed);
        Some(entry)
    }

    /// Returns whether the session was last confirmed at least `after` ago. Returns `true` to only
    /// one of several concurrent requests; the others use the session meanwhile.
    pub(super) fn is_to_be_confirmed(
        &self,
        entry: &HttpSession,
        now: Instant,
        after: Duration,
    ) -> bool {
        let now = self.millis(now);
        let last = entry.confirmed.load(Ordering::Relaxed);
        now.saturating_sub(last) >= after.as_millis() as u64
            && entry
                .confirmed
                .compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Returns whether to refresh the TTL of the session in the store.
    pub(super) fn is_to_be_refreshed(&self, entry: &HttpSession, now: Instant) -> bool {
        let last = entry.refreshed.load(Ordering::Relaxed);
        self.millis(now).saturating_sub(last) >= (self.limits.idle / 4).as_millis() as u64
    }

    pub(super) fn note_refreshed(&self, entry: &HttpSession, now: Instant) {
        entry.refreshed.store(self.millis(now), Ordering::Relaxed);
    }

    /// Returns the sessions with an open call or stream that need to be confirmed.
    pub(super) fn busy(&self, now: Instant, after: Duration) -> Vec<Arc<HttpSession>> {
        let open = self.read();
        open.by_id
            .values()
            .filter(|entry| !entry.is_idle() && self.is_to_be_confirmed(entry, now, after))
            .cloned()
            .collect()
    }

    /// Removes a session and ends its calls and streams.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<HttpSession>> {
        let removed = self.write().remove(id);
        removed.inspect(|entry| self.end(entry))
    }

    /// Removes all sessions that exceed the idle timeout.
    pub(super) fn sweep(&self, now: Instant) -> Vec<Arc<HttpSession>> {
        let oldest = self.millis(now).saturating_sub(self.limits.idle.as_millis() as u64);
        let mut open = self.write();
        let expired: Vec<_> = open
            .by_id
            .values()
            .filter(|entry| entry.used() < oldest && entry.is_idle())
            .cloned()
            .collect();
        for entry in &expired {
            open.remove(&entry.id);
        }
        drop(open);
        expired.iter().for_each(|entry| self.end(entry));
        expired
    }

    /// Ends the calls and streams of a session, and deletes its stored events.
    pub(super) fn end(&self, entry: &HttpSession) {
        entry.session.close();
        self.events.forget(&entry.id);
    }

    /// Removes and returns all sessions, for shutdown.
    pub(super) fn drain(&self) -> Vec<Arc<HttpSession>> {
        std::mem::take(&mut *self.write()).by_id.into_values().collect()
    }

    pub(super) fn len(&self) -> usize {
        self.read().by_id.len()
    }

    fn read(&self) -> RwLockReadGuard<'_, Open> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Open> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn millis(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.started).as_millis() as u64
    }
}

impl Open {
    fn insert(&mut self, entry: Arc<HttpSession>) {
        if let Some(caller) = &entry.caller {
            self.by_caller.entry(caller.clone()).or_default().insert(Arc::clone(&entry.id));
        }
        self.by_id.insert(Arc::clone(&entry.id), entry);
    }

    fn remove(&mut self, id: &str) -> Option<Arc<HttpSession>> {
        let entry = self.by_id.remove(id)?;
        if let Some(caller) = &entry.caller
            && let Some(ids) = self.by_caller.get_mut(caller)
        {
            ids.remove(id);
            if ids.is_empty() {
                self.by_caller.remove(caller);
            }
        }
        Some(entry)
    }

    /// Returns the number of sessions of a caller.
    fn count(&self, caller: &Caller) -> usize {
        self.by_caller.get(caller).map_or(0, HashSet::len)
    }

    /// Returns the longest idle session of a caller.
    fn idlest_of(&self, caller: &Caller) -> Option<Arc<str>> {
        let own = self.by_caller.get(caller)?.iter().filter_map(|id| self.by_id.get(id));
        let idle = own.filter(|entry| entry.is_idle());
        idle.min_by_key(|entry| entry.used()).map(|entry| Arc::clone(&entry.id))
    }

    /// Among the callers with an idle session, selects the caller with the most sessions. Returns
    /// its longest idle session.
    fn idlest_of_largest(&self) -> Option<Arc<str>> {
        let idle = self.by_id.values().filter(|entry| entry.is_idle());
        let share = |entry: &HttpSession| entry.caller.as_ref().map_or(0, |own| self.count(own));
        let key = |entry: &&Arc<HttpSession>| (Reverse(share(entry)), entry.used());
        idle.min_by_key(key).map(|entry| Arc::clone(&entry.id))
    }
}

impl HttpSession {
    /// Returns the caller that the session counts against.
    pub(super) fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    /// Opens a stream with event IDs.
    pub(super) fn open_stream(&self, events: &Arc<dyn EventStore>) -> Arc<Stream> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let key = StreamKey { session: Arc::clone(&self.id), stream: number };
        let stream = Arc::new(Stream::new(key, self.event_ids(), Arc::clone(events)));
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.len() >= STREAMS {
            // Remove an ended stream first: a running stream still expects its response.
            let ended =
                streams.iter().find(|(_, stream)| stream.has_ended()).map(|(number, _)| *number);
            if let Some(number) = ended.or_else(|| streams.keys().next().copied()) {
                streams.remove(&number);
            }
        }
        streams.insert(number, Arc::clone(&stream));
        stream
    }

    /// Returns a resumable stream of the session.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Returns the codec of event IDs for this session.
    pub(super) fn event_ids(&self) -> EventIds {
        let principal = self.session.principal().clone();
        EventIds::new(self.seal.clone(), Arc::clone(&self.id), principal)
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns whether the session has no call and no open stream.
    fn is_idle(&self) -> bool {
        self.open_streams.load(Ordering::Relaxed) == 0
            && self.session.running().is_none_or(InFlight::is_empty)
    }
}

/// Returns an unguessable ID: 128 random bits in hexadecimal.
pub(super) fn new_id() -> Option<Arc<str>> {
    use fmt::Write;

    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut id = String::with_capacity(32);
    for byte in bytes {
        write!(id, "{byte:02x}").ok()?;
    }
    Some(id.into())
}

/// Returns whether `text` has the format of a session ID.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the first stream number of a portable session. It is random, because an event ID
/// contains the stream number and must not match a stream on another replica.
fn random_first_stream() -> u64 {
    let mut bytes = [0; 8];
    // If the system has no random bytes, no session can be opened either.
    let _ = getrandom::fill(&mut bytes);
    u64::from_le_bytes(bytes) >> 1
}

impl fmt::Debug for HttpSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSession").field("session", &self.session).finish_non_exhaustive()
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.len()).finish_non_exhaustive()
    }
}

//! The legacy sessions of an HTTP server, by id.

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

use outlive_protocol::{Principal, Seal, Session};

use super::{
    events::{EventStore, StreamKey},
    resume::{EventIds, Stream},
};
use crate::caller::Caller;

/// Streams of one session whose events can be asked for. More than a client has open at once.
const STREAMS: usize = 64;

/// All sessions. Ids are unguessable, and of no use to anyone but their principal.
pub(super) struct Sessions {
    // Read for every legacy request, written when sessions come and go.
    open: RwLock<Open>,
    events: Arc<dyn EventStore>,
    seal: Seal,
    limits: SessionLimits,
    started: Instant,
}

/// How many sessions there may be, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLimits {
    pub(super) max: usize,
    pub(super) max_per_caller: usize,
    pub(super) idle: Duration,
}

/// The sessions that are open, and whose they are.
#[derive(Default)]
struct Open {
    by_id: HashMap<Arc<str>, Arc<HttpSession>>,
    by_caller: HashMap<Caller, HashSet<Arc<str>>>,
}

/// A session and its streams.
pub(super) struct HttpSession {
    pub(super) id: Arc<str>,
    pub(super) session: Arc<Session>,
    /// Whose share of the sessions it counts in.
    caller: Option<Caller>,
    seal: Seal,
    /// When it was last used, in milliseconds since the server started.
    used: AtomicU64,
    /// When the keeper was last asked whether it is still there, and when it was last made to keep
    /// it for its whole time. Of no meaning where there is no keeper.
    confirmed: AtomicU64,
    refreshed: AtomicU64,
    /// Responses that are being written.
    pub(super) open_streams: AtomicUsize,
    /// The stream that tells this session's changes.
    pub(super) listening: AtomicU64,
    next_stream: AtomicU64,
    // A BTreeMap, because an empty one takes no memory and the oldest is found first.
    streams: Mutex<BTreeMap<u64, Arc<Stream>>>,
}

/// There are as many sessions as there may be, and all of them are in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    /// Of all callers together.
    Total,
    /// Of this caller.
    Caller,
}

/// A session that has been entered.
#[derive(Debug)]
pub(super) enum Inserted {
    Now {
        entry: Arc<HttpSession>,
        /// The one that was ended to make room.
        ended: Option<Arc<HttpSession>>,
    },
    /// It was there already.
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

    /// Enters a session under its id, unless it is there. A caller with too many makes room among its
    /// own: the one that has been idle for longest ends. When all have too many, one of the caller that
    /// has most ends.
    pub(super) fn insert(
        &self,
        id: Arc<str>,
        session: Arc<Session>,
        caller: Option<Caller>,
        now: Instant,
    ) -> Result<Inserted, Full> {
        let millis = self.millis(now);
        let first_stream = if session.portable().is_some() { anywhere() } else { 0 };
        let mut open = self.write();
        if let Some(entry) = open.by_id.get(&id) {
            // Two requests have brought it here at once.
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
        let is_terminal = |caller| open.count(caller) >= self.limits.max_per_caller;
        let idlest = match &entry.caller {
            Some(caller) if is_terminal(caller) => {
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

    /// The session with this id, if it is this principal's. A foreign one is an unknown one.
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

    /// Whether a session was last confirmed that long ago. Of several who ask at once, one is told
    /// so, and the others go on meanwhile.
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

    /// Whether the keeper should be made to keep a session for longer.
    pub(super) fn is_to_be_refreshed(&self, entry: &HttpSession, now: Instant) -> bool {
        let last = entry.refreshed.load(Ordering::Relaxed);
        self.millis(now).saturating_sub(last) >= (self.limits.idle / 4).as_millis() as u64
    }

    pub(super) fn note_refreshed(&self, entry: &HttpSession, now: Instant) {
        entry.refreshed.store(self.millis(now), Ordering::Relaxed);
    }

    /// The sessions with a call or a stream that are to be confirmed.
    pub(super) fn busy(&self, now: Instant, after: Duration) -> Vec<Arc<HttpSession>> {
        let open = self.read();
        open.by_id
            .values()
            .filter(|entry| !entry.is_idle() && self.is_to_be_confirmed(entry, now, after))
            .cloned()
            .collect()
    }

    /// Takes a session out. Its calls and streams end.
    pub(super) fn remove(&self, id: &str) -> Option<Arc<HttpSession>> {
        let removed = self.write().remove(id);
        removed.inspect(|entry| self.end(entry))
    }

    /// Takes out all sessions that have been idle for too long.
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

    /// Everything that belongs to a session ends with it.
    pub(super) fn end(&self, entry: &HttpSession) {
        entry.session.close();
        self.events.forget(&entry.id);
    }

    /// All sessions, for shutting down.
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

    /// How many sessions a caller has.
    fn count(&self, caller: &Caller) -> usize {
        self.by_caller.get(caller).map_or(0, HashSet::len)
    }

    /// The session of a caller that has been idle for longest.
    fn idlest_of(&self, caller: &Caller) -> Option<Arc<str>> {
        let own = self.by_caller.get(caller)?.iter().filter_map(|id| self.by_id.get(id));
        let idle = own.filter(|entry| entry.is_idle());
        idle.min_by_key(|entry| entry.used()).map(|entry| Arc::clone(&entry.id))
    }

    /// Of the callers that have an idle session, the session of the one with most sessions that has
    /// been idle for longest.
    fn idlest_of_largest(&self) -> Option<Arc<str>> {
        let idle = self.by_id.values().filter(|entry| entry.is_idle());
        let share = |entry: &HttpSession| entry.caller.as_ref().map_or(0, |own| self.count(own));
        let key = |entry: &&Arc<HttpSession>| (Reverse(share(entry)), entry.used());
        idle.min_by_key(key).map(|entry| Arc::clone(&entry.id))
    }
}

impl HttpSession {
    /// Whose share of the sessions it counts in.
    pub(super) fn caller(&self) -> Option<&Caller> {
        self.caller.as_ref()
    }

    /// Opens a numbered stream.
    pub(super) fn open_stream(&self, events: &Arc<dyn EventStore>) -> Arc<Stream> {
        let number = self.next_stream.fetch_add(1, Ordering::Relaxed);
        let key = StreamKey { session: Arc::clone(&self.id), stream: number };
        let stream = Arc::new(Stream::new(key, self.event_ids(), Arc::clone(events)));
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if streams.len() >= STREAMS {
            // An ended one is forgotten first: a running one still has an answer to keep.
            let ended =
                streams.iter().find(|(_, stream)| stream.has_ended()).map(|(number, _)| *number);
            if let Some(number) = ended.or_else(|| streams.keys().next().copied()) {
                streams.remove(&number);
            }
        }
        streams.insert(number, Arc::clone(&stream));
        stream
    }

    /// A stream of this session that can be resumed.
    pub(super) fn stream(&self, number: u64) -> Option<Arc<Stream>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned()
    }

    /// Writes and reads the ids of this session's events.
    pub(super) fn event_ids(&self) -> EventIds {
        let principal = self.session.principal().clone();
        EventIds::new(self.seal.clone(), Arc::clone(&self.id), principal)
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// A session with a call or a stream is never idle.
    fn is_idle(&self) -> bool {
        self.open_streams.load(Ordering::Relaxed) == 0 && self.session.in_flight().is_empty()
    }
}

/// 128 random bits: visible ASCII, and nobody guesses it.
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

/// Whether a text can be an id at all.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Where the streams of a portable session begin to be numbered: at a random place, because an
/// event's id names its stream, and must not name another one on another replica.
fn anywhere() -> u64 {
    let mut bytes = [0; 8];
    // Without random bytes there are no sessions either.
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

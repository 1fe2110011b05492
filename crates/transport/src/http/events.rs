//! What makes legacy streams resumable: the events a client may have missed.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    fmt,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

/// Which stream of which session an event belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "stores read it")]
pub struct StreamKey {
    /// The session's id: secret, and bound to its principal before a store is ever asked.
    pub session: Arc<str>,
    /// The stream, counted within the session.
    pub stream: u64,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores keep it")]
pub struct Event {
    /// Counted from 0 without gaps.
    pub number: u64,
    /// A JSON-RPC message, or nothing.
    pub data: Bytes,
}

/// Keeps the events of streams for clients that come back for them.
pub trait EventStore: Send + Sync + 'static {
    /// Keeps an event. Events of a stream come in order. Must not block: a store that lives
    /// elsewhere queues.
    fn append(&self, stream: &StreamKey, event: Event);

    /// The events after number `after`, in order, as far as they are still there.
    fn replay<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
    ) -> Pin<Box<dyn Future<Output = Vec<Event>> + Send + 'a>>;

    /// Forgets a session that has ended.
    fn forget(&self, session: &str);
}

/// Keeps events in memory, up to a bound per session; the oldest go first.
pub struct MemoryEvents {
    per_session: usize,
    sessions: Mutex<HashMap<Arc<str>, Kept>>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    streams: BTreeMap<u64, VecDeque<Event>>,
}

/// What an event costs besides its data, roughly: enough to bound many empty ones.
const OVERHEAD: usize = 64;

impl MemoryEvents {
    /// Keeps up to this many bytes for each session.
    pub fn new(bytes_per_session: usize) -> Self {
        Self { per_session: bytes_per_session, sessions: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Kept>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryEvents {
    /// 1 MiB for each session: some thousand progress events, or the answers of a busy minute.
    fn default() -> Self {
        Self::new(1 << 20)
    }
}

impl EventStore for MemoryEvents {
    fn append(&self, stream: &StreamKey, event: Event) {
        let mut sessions = self.lock();
        let kept = sessions.entry(Arc::clone(&stream.session)).or_default();
        kept.bytes += event.data.len() + OVERHEAD;
        kept.streams.entry(stream.stream).or_default().push_back(event);
        while kept.bytes > self.per_session && kept.drop_oldest() {}
    }

    fn replay<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
    ) -> Pin<Box<dyn Future<Output = Vec<Event>> + Send + 'a>> {
        let events =
            self.lock().get(&stream.session).and_then(|kept| kept.streams.get(&stream.stream)).map(
                |events| events.iter().filter(|event| event.number > after).cloned().collect(),
            );
        Box::pin(ready(events.unwrap_or_default()))
    }

    fn forget(&self, session: &str) {
        self.lock().remove(session);
    }
}

impl Kept {
    /// Drops the oldest event of the oldest stream. The newest event of a stream is its answer,
    /// most likely, and goes only when its stream is the last one left.
    fn drop_oldest(&mut self) -> bool {
        let oldest =
            self.streams.iter().find(|(_, events)| events.len() > 1).map(|(stream, _)| *stream);
        let Some(stream) = oldest.or_else(|| self.streams.keys().next().copied()) else {
            return false;
        };
        let Some(events) = self.streams.get_mut(&stream) else { return false };
        if let Some(event) = events.pop_front() {
            self.bytes -= event.data.len() + OVERHEAD;
        }
        if events.is_empty() {
            self.streams.remove(&stream);
        }
        true
    }
}

impl fmt::Debug for MemoryEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEvents").field("sessions", &self.lock().len()).finish_non_exhaustive()
    }
}

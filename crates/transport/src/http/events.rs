//! Events of legacy streams, stored so that clients can resume a lost stream.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    fmt,
    future::{Future, ready},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;

/// Stream of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_structs, reason = "stores read it")]
pub struct StreamKey {
    /// Session ID. The session belongs to a principal, which the server checks before it reads the
    /// store.
    pub session: Arc<str>,
    /// Number of the stream within the session.
    pub stream: u64,
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "stores keep it")]
pub struct Event {
    /// Event number, counted from 0 without gaps.
    pub number: u64,
    /// JSON-RPC message, or empty.
    pub data: Bytes,
}

/// Store of the events of streams, from which clients resume.
pub trait EventStore: Send + Sync + 'static {
    /// Stores an event. Events of a stream arrive in order. Must not block: a remote store must use
    /// a queue.
    fn append(&self, stream: &StreamKey, event: Event);

    /// Returns the stored events after number `after`, in order.
    fn replay<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
    ) -> Pin<Box<dyn Future<Output = Vec<Event>> + Send + 'a>>;

    /// Deletes the events of a session that has ended.
    fn forget(&self, session: &str);
}

/// Event store in memory, with a limit per session and a limit for all sessions.
///
/// A session above its limit loses its oldest events. Above the total limit, the session with the
/// most bytes loses events.
pub struct MemoryEventStore {
    max_session_bytes: usize,
    max_bytes: usize,
    sessions: Mutex<Sessions>,
}

#[derive(Default)]
struct Sessions {
    bytes: usize,
    by_id: HashMap<Arc<str>, Kept>,
    // Index that finds the largest session without a scan.
    by_size: BTreeSet<(usize, Arc<str>)>,
}

#[derive(Default)]
struct Kept {
    bytes: usize,
    streams: BTreeMap<u64, VecDeque<Event>>,
}

/// Approximate memory of an event besides its data. Bounds the number of empty events.
const OVERHEAD: usize = 64;

impl MemoryEventStore {
    /// Creates a store with this limit per session, and a total limit of 16 MiB.
    pub fn new(bytes_per_session: usize) -> Self {
        Self {
            max_session_bytes: bytes_per_session,
            max_bytes: MAX_BYTES,
            sessions: Mutex::default(),
        }
    }

    /// Sets the limit for all sessions together.
    #[must_use]
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Default limit for all sessions together.
pub(super) const MAX_BYTES: usize = 16 << 20;

impl Default for MemoryEventStore {
    /// Creates a store with 1 MiB per session: some thousand progress events, or the responses of a
    /// busy minute.
    fn default() -> Self {
        Self::new(1 << 20)
    }
}

impl EventStore for MemoryEventStore {
    fn append(&self, stream: &StreamKey, event: Event) {
        let mut sessions = self.lock();
        sessions.change(&stream.session, |kept| {
            kept.bytes += event.data.len() + OVERHEAD;
            kept.streams.entry(stream.stream).or_default().push_back(event);
            while kept.bytes > self.max_session_bytes && kept.drop_oldest() {}
        });
        while sessions.bytes > self.max_bytes {
            let Some((_, largest)) = sessions.by_size.last().cloned() else { return };
            sessions.change(&largest, |kept| {
                kept.drop_oldest();
            });
        }
    }

    fn replay<'a>(
        &'a self,
        stream: &'a StreamKey,
        after: u64,
    ) -> Pin<Box<dyn Future<Output = Vec<Event>> + Send + 'a>> {
        let sessions = self.lock();
        let kept = sessions.by_id.get(&stream.session);
        let events = kept
            .and_then(|kept| kept.streams.get(&stream.stream))
            .map(|events| events.iter().filter(|event| event.number > after).cloned().collect());
        Box::pin(ready(events.unwrap_or_default()))
    }

    fn forget(&self, session: &str) {
        self.lock().remove(session);
    }
}

impl Sessions {
    /// Changes the stored events of a session. Removes the session if no events are left.
    fn change(&mut self, id: &Arc<str>, change: impl FnOnce(&mut Kept)) {
        let mut kept = self.remove(id).unwrap_or_default();
        change(&mut kept);
        if kept.bytes > 0 {
            self.bytes += kept.bytes;
            self.by_size.insert((kept.bytes, Arc::clone(id)));
            self.by_id.insert(Arc::clone(id), kept);
        }
    }

    fn remove(&mut self, id: &str) -> Option<Kept> {
        let (id, kept) = self.by_id.remove_entry(id)?;
        self.bytes -= kept.bytes;
        self.by_size.remove(&(kept.bytes, id));
        Some(kept)
    }
}

impl Kept {
    /// Removes the oldest event of the oldest stream with more than one event. The newest event of
    /// a stream is usually its response, so it is removed last.
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

impl fmt::Debug for MemoryEventStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryEventStore")
            .field("sessions", &self.lock().by_id.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, EventStore, MemoryEventStore, StreamKey};

    fn append(events: &MemoryEventStore, session: &str, number: u64, bytes: usize) {
        let key = StreamKey { session: session.into(), stream: 0 };
        events.append(&key, Event { number, data: vec![b'x'; bytes].into() });
    }

    async fn numbers(events: &MemoryEventStore, session: &str) -> Vec<u64> {
        let key = StreamKey { session: session.into(), stream: 0 };
        events.replay(&key, 0).await.iter().map(|event| event.number).collect()
    }

    #[tokio::test]
    async fn event_memory_of_many_sessions_stays_under_the_total() {
        let events = MemoryEventStore::new(1 << 20).max_bytes(10_000);
        append(&events, "honest", 1, 900);
        for session in 0..100 {
            for number in 1..=9 {
                append(&events, &format!("greedy {session}"), number, 400);
            }
        }
        let used = events.lock().bytes;
        assert!((9_000..=10_000).contains(&used), "{used}");
        events.forget("greedy 99");
        assert_eq!(numbers(&events, "greedy 99").await, [0_u64; 0]);
    }

    #[tokio::test]
    async fn greedy_session_loses_its_own_oldest_events_first() {
        let events = MemoryEventStore::new(1 << 20).max_bytes(10_000);
        append(&events, "honest", 1, 900);
        for number in 1..=200 {
            append(&events, "greedy", number, 400);
        }
        assert_eq!(numbers(&events, "honest").await, [1]);
        let kept = numbers(&events, "greedy").await;
        assert_eq!((kept.first(), kept.last()), (Some(&182), Some(&200)));
        events.forget("greedy");
        events.forget("honest");
        let sessions = events.lock();
        assert_eq!((sessions.bytes, sessions.by_id.len(), sessions.by_size.len()), (0, 0, 0));
    }
}

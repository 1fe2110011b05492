//! Resumable streams: events are stored, so that a client can resume after a disconnect.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use bytes::Bytes;
use outlive_protocol::{Principal, Seal};

use super::events::{Event, EventStore, StreamKey};

/// One stream of a session.
pub(super) struct Stream {
    key: StreamKey,
    ids: EventIds,
    store: Arc<dyn EventStore>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    next: u64,
    ended: bool,
    /// Increases with every reader. Only the newest reader is served.
    reader: u64,
    /// Waker of a reader that waits for the next event.
    waker: Option<Waker>,
    /// Waker of a call that sends its events directly, and only needs to know when another reader
    /// attaches.
    writer: Option<Waker>,
}

/// Encodes and decodes event IDs. The IDs are sealed: a forged ID, or the ID of another session or
/// principal, is rejected.
#[derive(Clone, Debug)]
pub(super) struct EventIds {
    seal: Seal,
    session: Arc<str>,
    principal: Principal,
}

impl EventIds {
    pub(super) fn new(seal: Seal, session: Arc<str>, principal: Principal) -> Self {
        Self { seal, session, principal }
    }

    /// Returns the sealed ID of an event: its stream and its number.
    fn write(&self, stream: u64, number: u64) -> Option<String> {
        let mut content = [0; 16];
        content[..8].copy_from_slice(&stream.to_le_bytes());
        content[8..].copy_from_slice(&number.to_le_bytes());
        self.seal.seal(&content, &self.context())
    }

    /// Opens an ID. Returns the stream and the number.
    pub(super) fn read(&self, id: &str) -> Option<(u64, u64)> {
        let content = self.seal.open(id, &self.context())?;
        let (stream, number) = content.split_first_chunk()?;
        Some((u64::from_le_bytes(*stream), u64::from_le_bytes(number.try_into().ok()?)))
    }

    fn context(&self) -> [&str; 3] {
        [Seal::EVENT_ID, &self.session, self.principal.key()]
    }
}

/// State of a stream, relative to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The stream has newer events.
    More {
        /// Number of the newest event.
        newest: u64,
    },
    /// The stream has no newer events and has ended.
    Ended,
    /// The stream has no newer events yet; the reader is woken when it does.
    Waiting,
    /// Another reader has attached.
    TakenOver,
}

impl Stream {
    pub(super) fn new(key: StreamKey, ids: EventIds, store: Arc<dyn EventStore>) -> Self {
        Self { key, ids, store, state: Mutex::default() }
    }

    pub(super) fn key(&self) -> &StreamKey {
        &self.key
    }

    pub(super) fn store(&self) -> &Arc<dyn EventStore> {
        &self.store
    }

    /// Stores an event under the next number, and wakes the waiting reader.
    pub(super) fn append(&self, data: &[u8]) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        // The lock is held, so that events reach the store in order.
        self.store.append(&self.key, Event { number, data: Bytes::copy_from_slice(data) });
        state.wake();
        number
    }

    /// Returns the ID of an event, sealed anew each time.
    ///
    /// Returns `None` if the system has no random bytes.
    pub(super) fn id(&self, number: u64) -> Option<String> {
        self.ids.write(self.key.stream, number)
    }

    /// Marks the stream as ended.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.wake();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Attaches a new reader and returns its ID. The previous reader is woken and ends.
    pub(super) fn attach(&self) -> u64 {
        let mut state = self.lock();
        state.reader += 1;
        state.wake();
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
        state.reader
    }

    /// Returns whether `reader` is still attached. If so, the task is woken when another reader
    /// attaches.
    pub(super) fn poll_reader(&self, reader: u64, cx: &Context<'_>) -> bool {
        let mut state = self.lock();
        if state.reader != reader {
            return false;
        }
        match &state.writer {
            Some(known) if known.will_wake(cx.waker()) => {}
            _ => state.writer = Some(cx.waker().clone()),
        }
        true
    }

    /// Returns the state of the stream after event `last`, for its reader.
    pub(super) fn poll(&self, reader: u64, last: u64, cx: &Context<'_>) -> Progress {
        let mut state = self.lock();
        if state.reader != reader {
            return Progress::TakenOver;
        }
        // A sealed ID is never beyond the end, but the code does not rely on that.
        if state.next > last.saturating_add(1) {
            return Progress::More { newest: state.next - 1 };
        }
        if state.ended {
            return Progress::Ended;
        }
        state.waker = Some(cx.waker().clone());
        Progress::Waiting
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("key", &self.key).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::MemoryEventStore;

    fn ids(session: &str, principal: Principal) -> EventIds {
        EventIds::new(Seal::new([7; 32]), session.into(), principal)
    }

    #[test]
    fn event_id_opens_only_for_its_session_and_principal() {
        let annas = ids("s", Principal::named("anna"));
        for (stream, number) in [(0, 0), (1, 2), (u64::MAX, u64::MAX - 1)] {
            let id = annas.write(stream, number).unwrap();
            assert_eq!(annas.read(&id), Some((stream, number)));
            assert_eq!(ids("t", Principal::named("anna")).read(&id), None);
            assert_eq!(ids("s", Principal::named("bert")).read(&id), None);
            assert_eq!(ids("s", Principal::ANONYMOUS).read(&id), None);
        }
    }

    #[test]
    fn sealed_value_of_another_kind_is_rejected_as_event_id() {
        let annas = ids("s", Principal::named("anna"));
        let context = annas.context();
        for content in [&b""[..], &[0; 8], &[0; 15], &[0; 17], &[0; 24]] {
            assert_eq!(annas.read(&annas.seal.seal(content, &context).unwrap()), None);
        }
        let cursor = annas.seal.seal(&[0; 16], &["cursor", context[1], context[2]]).unwrap();
        assert_eq!(annas.read(&cursor), None);
    }

    #[test]
    fn position_beyond_the_end_waits_for_new_events() {
        let key = StreamKey { session: "s".into(), stream: 0 };
        let ids = ids("s", Principal::ANONYMOUS);
        let stream = Stream::new(key, ids, Arc::new(MemoryEventStore::default()));
        let reader = stream.attach();
        let cx = Context::from_waker(Waker::noop());
        assert_eq!(stream.append(b"first"), 0);
        for last in [0, 1, u64::MAX - 1, u64::MAX] {
            assert_eq!(stream.poll(reader, last, &cx), Progress::Waiting);
        }
        stream.append(b"second");
        assert_eq!(stream.poll(reader, 0, &cx), Progress::More { newest: 1 });
    }
}

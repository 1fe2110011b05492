//! A numbered stream: its events are kept, so that a client that lost it can come back.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use bytes::Bytes;
use outlive_protocol::{Principal, Seal};

use super::events::{Event, EventStore, StreamKey};

/// One stream of one session, whoever reads it.
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
    /// Grows with every reader; only the newest one is served.
    reader: u64,
    /// Who waits for the next event.
    waker: Option<Waker>,
    /// Who writes the events itself, and waits only to be told that another reader has come.
    writer: Option<Waker>,
}

/// Writes and reads the ids of events. They are sealed: one that was made up, or given to another
/// session or caller, is no id at all.
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

    /// The id of an event: which stream of the session it is of, and its number there.
    fn write(&self, stream: u64, number: u64) -> Option<String> {
        let mut content = [0; 16];
        content[..8].copy_from_slice(&stream.to_le_bytes());
        content[8..].copy_from_slice(&number.to_le_bytes());
        self.seal.seal(&content, &self.context())
    }

    /// Reads an id back: stream and number.
    pub(super) fn read(&self, id: &str) -> Option<(u64, u64)> {
        let content = self.seal.open(id, &self.context())?;
        let (stream, number) = content.split_first_chunk()?;
        Some((u64::from_le_bytes(*stream), u64::from_le_bytes(number.try_into().ok()?)))
    }

    fn context(&self) -> [&str; 3] {
        ["event", &self.session, self.principal.key()]
    }
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// There are events after the one asked about.
    More {
        /// The number of the newest.
        newest: u64,
    },
    /// There will be no more.
    Ended,
    /// There may be more; the reader will be woken.
    Waiting,
    /// Another reader has come.
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

    /// Keeps an event under the next number, and wakes who waits for it.
    pub(super) fn append(&self, data: &[u8]) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        // Inside the lock, so that events reach the store in their order.
        self.store.append(&self.key, Event { number, data: Bytes::copy_from_slice(data) });
        state.wake();
        number
    }

    /// The id of an event. Another one each time: what clients hold is only ever given back.
    /// `None` when there are no random bytes for one.
    pub(super) fn id(&self, number: u64) -> Option<String> {
        self.ids.write(self.key.stream, number)
    }

    /// Nothing more will be appended.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.wake();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Becomes the reader of this stream; the one before is woken, and told that it is over.
    pub(super) fn attach(&self) -> u64 {
        let mut state = self.lock();
        state.reader += 1;
        state.wake();
        if let Some(writer) = state.writer.take() {
            writer.wake();
        }
        state.reader
    }

    /// Whether this is still the reader of this stream; if so, it is woken when that changes.
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

    /// How far the stream is beyond `last`, for its reader.
    pub(super) fn poll(&self, reader: u64, last: u64, cx: &Context<'_>) -> Progress {
        let mut state = self.lock();
        if state.reader != reader {
            return Progress::TakenOver;
        }
        // No id that was sealed here is from the future, but nothing may depend on that.
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
    fn an_id_is_read_by_those_it_was_written_for() {
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
    fn what_was_sealed_for_something_else_is_no_id() {
        let annas = ids("s", Principal::named("anna"));
        let context = annas.context();
        for content in [&b""[..], &[0; 8], &[0; 15], &[0; 17], &[0; 24]] {
            assert_eq!(annas.read(&annas.seal.seal(content, &context).unwrap()), None);
        }
        let cursor = annas.seal.seal(&[0; 16], &["cursor", context[1], context[2]]).unwrap();
        assert_eq!(annas.read(&cursor), None);
    }

    #[test]
    fn a_position_beyond_the_end_waits_like_one_at_the_end() {
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

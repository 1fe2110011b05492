//! A numbered stream: its events are kept, so that a client that lost it can come back.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Waker},
};

use bytes::Bytes;

use super::events::{Event, EventStore, StreamKey};

/// One stream of one session, whoever reads it.
pub(super) struct Stream {
    key: StreamKey,
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
    pub(super) fn new(key: StreamKey, store: Arc<dyn EventStore>) -> Self {
        Self { key, store, state: Mutex::default() }
    }

    pub(super) fn key(&self) -> &StreamKey {
        &self.key
    }

    pub(super) fn store(&self) -> &Arc<dyn EventStore> {
        &self.store
    }

    /// Keeps an event, writes its id into `out`, and wakes who waits for it.
    pub(super) fn append(&self, data: &[u8]) -> u64 {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        // Inside the lock, so that events reach the store in their order.
        self.store.append(&self.key, Event { number, data: Bytes::copy_from_slice(data) });
        state.wake();
        number
    }

    /// The id of an event: unique within the session, and it says which stream it is of.
    pub(super) fn id(&self, number: u64) -> impl fmt::Display {
        let stream = self.key.stream;
        struct Id(u64, u64);
        impl fmt::Display for Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}-{}", self.0, self.1)
            }
        }
        Id(stream, number)
    }

    /// Reads an id back: stream and number.
    pub(super) fn parse_id(id: &str) -> Option<(u64, u64)> {
        let (stream, number) = id.split_once('-')?;
        Some((stream.parse().ok()?, number.parse().ok()?))
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
        // An id that a client made up may be the largest there is.
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

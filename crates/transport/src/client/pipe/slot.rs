//! The queue of messages for one request.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use outlive_protocol::{Incoming, IncomingKind};

#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Incoming>,
    closed: bool,
    waker: Option<Waker>,
}

impl Slot {
    pub(super) fn new(limit: usize) -> Self {
        Self { state: Mutex::default(), limit }
    }

    pub(super) fn put(&self, message: Incoming) {
        let mut state = self.lock();
        let is_answer =
            matches!(message.kind(), IncomingKind::Result { .. } | IncomingKind::Error { .. });
        // Responses are bounded too: a peer could repeat one response ID to fill the memory.
        let limit = if is_answer { self.limit * 4 } else { self.limit };
        if state.queue.len() >= limit {
            tracing::warn!("dropping a message: the queue of its request is full");
            return;
        }
        state.queue.push_back(message);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Takes the next message, or `None` if the pipe is closed.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        let mut state = self.lock();
        match state.queue.pop_front() {
            Some(message) => Poll::Ready(Some(message)),
            None if state.closed => Poll::Ready(None),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

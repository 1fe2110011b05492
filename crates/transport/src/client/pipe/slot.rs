//! The queue of messages for one request.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use outlive_protocol::{Incoming, IncomingKind};

use crate::client::{TransportError, TransportErrorKind};

#[derive(Debug)]
pub(super) struct Slot {
    state: Mutex<State>,
    limit: usize,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Incoming>,
    /// Failure of this request only.
    failed: Option<TransportError>,
    /// Reason why the pipe is closed.
    closed: Option<TransportErrorKind>,
    /// Whether a message was dropped, which is logged once.
    is_overfull: bool,
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
            if !std::mem::replace(&mut state.is_overfull, true) {
                tracing::warn!("dropping messages: the queue of their request is full");
            }
            return;
        }
        state.queue.push_back(message);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Takes the next message, or the error after the last one.
    pub(super) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Result<Incoming, TransportError>> {
        let mut state = self.lock();
        if let Some(message) = state.queue.pop_front() {
            return Poll::Ready(Ok(message));
        }
        let closed = state.closed.clone().map(TransportError::after_sending);
        match state.failed.take().or(closed) {
            Some(error) => Poll::Ready(Err(error)),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Returns the number of responses that were not read.
    pub(super) fn responses(&self) -> u64 {
        let state = self.lock();
        state.queue.iter().filter(|message| message.answers().is_some()).count() as u64
    }

    /// Fails the request.
    pub(super) fn fail(&self, error: TransportError) {
        let mut state = self.lock();
        state.failed = Some(error);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn close(&self, reason: TransportErrorKind) {
        let mut state = self.lock();
        state.closed = Some(reason);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

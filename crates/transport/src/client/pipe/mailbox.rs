//! Where messages for one request wait until they are read.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, PoisonError, Weak},
    task::{Poll, Waker},
};

use outlive_protocol::{Incoming, IncomingKind};

use super::Shared;

/// The messages for one request. Dropping it forgets the request.
#[derive(Debug)]
pub struct Mailbox {
    id: u64,
    slot: Arc<Slot>,
    pipe: Weak<Shared>,
}

impl Mailbox {
    pub(super) fn new(id: u64, slot: Arc<Slot>, pipe: Weak<Shared>) -> Self {
        Self { id, slot, pipe }
    }

    /// The next message, or `None` when the pipe has closed. Can be dropped while it waits.
    pub async fn next(&mut self) -> Option<Incoming> {
        poll_fn(|cx| {
            let mut state = self.slot.lock();
            match state.queue.pop_front() {
                Some(message) => Poll::Ready(Some(message)),
                None if state.closed => Poll::Ready(None),
                None => {
                    state.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.upgrade() {
            pipe.forget(self.id);
        }
    }
}

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
        // Answers have a bound too: a peer that sends one id for ever must not fill the memory.
        let limit = if is_answer { self.limit * 4 } else { self.limit };
        if state.queue.len() >= limit {
            tracing::warn!("messages for a request that nobody reads were dropped");
            return;
        }
        state.queue.push_back(message);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

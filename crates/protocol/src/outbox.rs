//! The outgoing queue of a running call, and its cancellation signal.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crate::{Message, Notify, PartialResponse, Progress};

/// The queue between a handler and the owner of its run.
///
/// The queue is bounded and never blocks a sender of notifications: progress replaces older
/// progress, and log messages above the bound are dropped and counted. A slow reader therefore
/// affects only its own call.
#[derive(Default)]
pub struct Outbox {
    cancelled: AtomicBool,
    // A std mutex: no code awaits while it is held, for one push or pop.
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Notify>,
    /// A partial response, until the owner takes it. Holds one: the handler waits for capacity.
    partial: Option<Box<PartialResponse>>,
    waiting_for_room: Option<Waker>,
    /// Number of log messages dropped because the queue was full.
    dropped: usize,
    /// Newest progress that was not sent yet.
    held: Option<Progress>,
    last_progress: Option<f64>,
    last_said: Option<Instant>,
    owner: Option<Waker>,
    waiting_for_cancel: Vec<Waker>,
    closed: bool,
}

/// Result of [`Outbox::next`].
pub(crate) enum Next {
    Say(Message),
    /// Progress is throttled. It may be sent after this duration.
    Later(Duration),
    Nothing,
}

impl Outbox {
    /// Queues a notification. Ignores it after the call has ended.
    pub fn send(&self, notify: Notify, bound: usize) {
        let mut queue = self.lock();
        if queue.closed {
            return;
        }
        if queue.waiting.len() >= bound && matches!(notify, Notify::Log { .. }) {
            queue.dropped += 1;
            return;
        }
        if queue.waiting.capacity() == 0 {
            // Reserves one slot: most streams queue one message at a time, and some last for days.
            queue.waiting.reserve_exact(1);
        }
        queue.waiting.push_back(notify);
        queue.wake_owner();
    }

    /// Waits until the owner took all queued messages, so that a partial response has capacity.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if queue.closed || (queue.partial.is_none() && queue.waiting.is_empty()) {
            return Poll::Ready(());
        }
        queue.waiting_for_room = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Queues a partial response. Call [`Outbox::poll_room`] first.
    pub fn partial(&self, partial: Box<PartialResponse>) {
        let mut queue = self.lock();
        if !queue.closed {
            queue.partial = Some(partial);
            queue.wake_owner();
        }
    }

    /// Reports progress. Ignores values that do not increase, as the specification requires, and
    /// values that JSON cannot represent.
    pub fn progress(&self, mut progress: Progress) {
        progress.total = progress.total.filter(|total| total.is_finite());
        let mut queue = self.lock();
        if queue.closed
            || !progress.done.is_finite()
            || queue.last_progress.is_some_and(|last| progress.done <= last)
        {
            return;
        }
        queue.last_progress = Some(progress.done);
        queue.held = Some(progress);
        queue.wake_owner();
    }

    /// Cancels the call: clears the queue and wakes every waiter of [`Outbox::poll_cancelled`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        let mut queue = self.lock();
        queue.closed = true;
        queue.waiting.clear();
        queue.partial = None;
        queue.held = None;
        queue.wake_room();
        let wakers = mem::take(&mut queue.waiting_for_cancel);
        queue.wake_owner();
        drop(queue);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns whether [`Outbox::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Completes when the call is cancelled.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        // The flag is read under the lock, because `cancel` sets it before it takes the wakers.
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        if !queue.waiting_for_cancel.iter().any(|waker| waker.will_wake(cx.waker())) {
            queue.waiting_for_cancel.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Takes the next message, or registers the owner's waker.
    pub(crate) fn next(
        &self,
        now: impl FnOnce() -> Instant,
        interval: Duration,
        owner: &Waker,
    ) -> Next {
        let mut queue = self.lock();
        if let Some(message) = queue.take_waiting() {
            return Next::Say(message);
        }
        if queue.held.is_some() {
            let now = now();
            let rest =
                queue.last_said.map_or(Duration::ZERO, |said| interval.saturating_sub(now - said));
            if rest.is_zero() {
                queue.last_said = Some(now);
                return queue.held.take().map_or(Next::Nothing, |held| Next::Say(progress(held)));
            }
            queue.remember(owner);
            return Next::Later(rest);
        }
        queue.remember(owner);
        Next::Nothing
    }

    /// Takes the next message after the handler has ended, throttled progress included. Closes the
    /// outbox if none is left.
    pub(crate) fn drain(&self) -> Option<Message> {
        let mut queue = self.lock();
        let rest = queue.take_waiting().or_else(|| queue.held.take().map(progress));
        if rest.is_none() {
            queue.close();
        }
        rest
    }

    /// Closes the outbox. Later messages are ignored.
    pub(crate) fn close(&self) {
        self.lock().close();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A poisoned lock is usable: every change is a single push or take.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn progress(held: Progress) -> Message {
    Message::Notify(Notify::Progress(held))
}

impl Queue {
    fn close(&mut self) {
        self.closed = true;
        self.owner = None;
        self.wake_room();
    }

    fn take_waiting(&mut self) -> Option<Message> {
        let message = self.waiting.pop_front().map(Message::Notify);
        let message = message.or_else(|| self.partial.take().map(Message::Partial));
        if self.waiting.is_empty() && self.partial.is_none() {
            self.wake_room();
        }
        if message.is_some() && self.dropped > 0 {
            tracing::warn!(dropped = self.dropped, "client reads too slowly; log messages dropped");
            self.dropped = 0;
        }
        message
    }

    fn wake_room(&mut self) {
        if let Some(waker) = self.waiting_for_room.take() {
            waker.wake();
        }
    }

    fn wake_owner(&mut self) {
        if let Some(owner) = self.owner.take() {
            owner.wake();
        }
    }

    fn remember(&mut self, owner: &Waker) {
        match &self.owner {
            Some(known) if known.will_wake(owner) => {}
            _ => self.owner = Some(owner.clone()),
        }
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

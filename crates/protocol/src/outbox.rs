//! The outgoing queue of a running call, and its cancellation signal.

use std::{
    collections::VecDeque,
    fmt, mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use crate::{CancelReason, Message, Notify, PartialResponse, Progress, Receipt};

/// The queue between a handler and the owner of its run.
///
/// The queue is bounded and never blocks a sender of notifications: progress replaces older
/// progress, and log messages above the bound are dropped and counted. A slow reader therefore
/// affects only its own call.
#[derive(Default)]
pub struct Outbox {
    /// The reason of the cancellation; zero while the call is not cancelled.
    cancelled: AtomicU8,
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
    /// Callback for the delivery of the response.
    receipt: Option<Receipt>,
    /// Whether no client reads the messages of the call.
    unread: bool,
    waiting_for_disconnect: Option<Waker>,
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

    /// Cancels the call: clears the queue and wakes every waiter of [`Outbox::poll_cancelled`]. The
    /// reason of the first cancellation counts.
    pub fn cancel(&self, reason: CancelReason) {
        let _ = self.cancelled.compare_exchange(
            0,
            code_of(reason),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let mut queue = self.lock();
        queue.closed = true;
        queue.waiting.clear();
        queue.partial = None;
        queue.held = None;
        queue.wake_room();
        let wakers = mem::take(&mut queue.waiting_for_cancel);
        // Dropped outside the lock: the response will not be written.
        let receipt = queue.receipt.take();
        queue.wake_owner();
        drop(queue);
        drop(receipt);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns whether [`Outbox::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire) != 0
    }

    /// Returns why the call was cancelled, or `None` if it was not cancelled.
    pub fn cancel_reason(&self) -> Option<CancelReason> {
        let code = self.cancelled.load(Ordering::Acquire);
        REASONS.into_iter().find(|reason| code_of(*reason) == code)
    }

    /// Sets the callback for the delivery of the response. Replaces an earlier one.
    pub fn set_receipt(&self, receipt: Receipt) {
        self.lock().receipt = Some(receipt);
    }

    /// Records that the client disconnected from a call that continues.
    pub fn disconnect(&self) {
        let mut queue = self.lock();
        queue.unread = true;
        let waiting = queue.waiting_for_disconnect.take();
        drop(queue);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Completes when the client has disconnected from a call that continues.
    pub fn poll_disconnected(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if queue.unread {
            return Poll::Ready(());
        }
        queue.waiting_for_disconnect = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes every waiter of [`Outbox::poll_cancelled`] without cancelling the call. Used when the
    /// task of the call is cancelled.
    pub fn wake_cancelled(&self) {
        let wakers = mem::take(&mut self.lock().waiting_for_cancel);
        wakers.into_iter().for_each(Waker::wake);
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
    /// outbox if none is left, and returns the receipt.
    pub(crate) fn drain(&self) -> Result<Message, Option<Receipt>> {
        let mut queue = self.lock();
        let rest = queue.take_waiting().or_else(|| queue.held.take().map(progress));
        rest.ok_or_else(|| {
            let receipt = queue.receipt.take();
            queue.close();
            receipt
        })
    }

    /// Closes the outbox. Later messages are ignored.
    pub(crate) fn close(&self) {
        let mut queue = self.lock();
        queue.close();
        let receipt = queue.receipt.take();
        drop(queue);
        drop(receipt);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A poisoned lock is usable: every change is a single push or take.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const REASONS: [CancelReason; 3] =
    [CancelReason::Disconnected, CancelReason::TimedOut, CancelReason::Requested];

const fn code_of(reason: CancelReason) -> u8 {
    match reason {
        CancelReason::Disconnected => 1,
        CancelReason::TimedOut => 2,
        CancelReason::Requested => 3,
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

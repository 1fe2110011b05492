//! The way out of a running call: what its handler says, and how it learns that nobody listens.

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

/// The queue between a handler and whoever owns its run.
///
/// Bounded without ever blocking: progress replaces the progress before it, and log lines beyond
/// the bound are counted instead of kept, so that a slow reader costs its own call and no other.
#[derive(Default)]
pub struct Outbox {
    cancelled: AtomicBool,
    // A std mutex: nothing awaits while it is held, and it is held for a push or a pop.
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Notify>,
    /// A piece of several, until it is taken. There is room for one: whoever has more waits.
    partial: Option<Box<PartialResponse>>,
    waiting_for_room: Option<Waker>,
    /// Log lines that found the queue full.
    dropped: usize,
    /// The newest progress that has not been said yet.
    held: Option<Progress>,
    last_progress: Option<f64>,
    last_said: Option<Instant>,
    owner: Option<Waker>,
    waiting_for_cancel: Vec<Waker>,
    closed: bool,
}

/// What [`Outbox::next`] found.
pub(crate) enum Next {
    Say(Message),
    /// A progress is held back; it may be said after this span.
    Later(Duration),
    Nothing,
}

impl Outbox {
    /// Queues a notification. After the call has ended nothing is said any more.
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
            // Most streams have one message at a time waiting, and some last for days.
            queue.waiting.reserve_exact(1);
        }
        queue.waiting.push_back(notify);
        queue.wake_owner();
    }

    /// Waits until there is room for a piece, and everything that was said before is taken.
    pub fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        if queue.closed || (queue.partial.is_none() && queue.waiting.is_empty()) {
            return Poll::Ready(());
        }
        queue.waiting_for_room = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Says a piece of several. Wait for room before.
    pub fn partial(&self, partial: Box<PartialResponse>) {
        let mut queue = self.lock();
        if !queue.closed {
            queue.partial = Some(partial);
            queue.wake_owner();
        }
    }

    /// Notes how far the work is. Values that do not grow are ignored, as the specification asks,
    /// and so is what no number in JSON can say.
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

    /// Tells the handler, and everything it has started, that its answer is not wanted any more.
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

    /// Whether [`Outbox::cancel`] was called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Completes when the call is cancelled.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut queue = self.lock();
        // Read under the lock: `cancel` sets the flag before it takes the wakers.
        if self.is_cancelled() {
            return Poll::Ready(());
        }
        if !queue.waiting_for_cancel.iter().any(|waker| waker.will_wake(cx.waker())) {
            queue.waiting_for_cancel.push(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Takes the next notification, or remembers whom to wake for it.
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

    /// Takes what is left when the handler has ended, held-back progress included. When nothing
    /// is, the port has ended as with [`Outbox::close`].
    pub(crate) fn drain(&self) -> Option<Message> {
        let mut queue = self.lock();
        let rest = queue.take_waiting().or_else(|| queue.held.take().map(progress));
        if rest.is_none() {
            queue.close();
        }
        rest
    }

    /// Ends the port: what is said from now on goes nowhere.
    pub(crate) fn close(&self) {
        self.lock().close();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A panic while the queue was locked left it whole: every change is one push or one take.
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
            tracing::warn!(
                dropped = self.dropped,
                "the client reads too slowly; log messages were dropped"
            );
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
        f.debug_struct("Port").field("cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}

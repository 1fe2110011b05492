//! Detects idle runs.
//!
//! A run that has opened an input request may have other branches that can still make progress. The
//! run is idle when it is pending, waits only for input, and is not woken during the next scheduler
//! ticks. Only an idle run is dropped, so its parallel input requests are sent together.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Scheduler ticks during which an idle run must not be woken. The first tick lets other woken
/// tasks run, and the second lets those tasks wake the run.
const QUIET: u8 = 2;

/// Polls a run and detects when it is idle. Adds no cost until the run waits for input.
#[derive(Default)]
pub struct IdleDetector {
    watch: Option<Arc<Watch>>,
    quiet: u8,
}

/// Result of a poll.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a run either ends or waits")]
pub enum RunPoll<T> {
    /// The run has ended.
    Done(T),
    /// The run waits only for input.
    Idle,
}

/// A waker between a run and its owner that records whether the run was woken.
pub(crate) struct Watch {
    woken: AtomicBool,
    owner: Mutex<Waker>,
}

impl Watch {
    /// Creates a watch. A run that has not been polled with the watch counts as woken.
    pub(crate) fn new(owner: &Waker) -> Arc<Self> {
        Arc::new(Self { woken: AtomicBool::new(true), owner: Mutex::new(owner.clone()) })
    }

    /// Sets the waker of the run's owner.
    pub(crate) fn set_owner(&self, owner: &Waker) {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).clone_from(owner);
    }

    /// Returns whether the run was woken since the last call.
    pub(crate) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Returns whether the run was woken.
    pub(crate) fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }
}

impl Wake for Watch {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).wake_by_ref();
    }
}

impl IdleDetector {
    /// Polls `work` if it was woken. Then calls `waits_for_input`, which returns whether the run
    /// waits only for input.
    pub fn poll<F: Future>(
        &mut self,
        work: Pin<&mut F>,
        cx: &mut Context<'_>,
        waits_for_input: impl FnOnce() -> bool,
    ) -> Poll<RunPoll<F::Output>> {
        let Some(watch) = &self.watch else {
            if let Poll::Ready(output) = work.poll(cx) {
                return Poll::Ready(RunPoll::Done(output));
            }
            if waits_for_input() {
                // The run was polled with the owner's waker, so earlier wakes were not recorded.
                // One more poll registers the watch as the waker of every branch.
                self.watch = Some(Watch::new(cx.waker()));
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        };
        watch.set_owner(cx.waker());
        if watch.take() {
            self.quiet = 0;
            let waker = Waker::from(Arc::clone(watch));
            if let Poll::Ready(output) = work.poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(RunPoll::Done(output));
            }
            if watch.is_woken() {
                return Poll::Pending;
            }
        }
        if !waits_for_input() {
            return Poll::Pending;
        }
        if self.quiet < QUIET {
            self.quiet += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(RunPoll::Idle)
    }
}

impl fmt::Debug for IdleDetector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleDetector").field("quiet", &self.quiet).finish_non_exhaustive()
    }
}

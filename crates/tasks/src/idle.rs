//! When a run is parked.
//!
//! A run that has asked something may still have other branches to poll, other questions to ask.
//! It is parked when it is pending, has not been woken, still is not after more turns of the
//! scheduler, and waits for nothing but answers. Only then it may be dropped, so that questions
//! that are asked in parallel go out together.

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

/// Turns of the scheduler that a run must stay quiet for. One lets what was woken in this turn
/// run; the second lets that wake the run.
const QUIET: u8 = 2;

/// Polls a run, and notices when it is parked. Costs nothing until it might be.
#[derive(Default)]
pub struct IdleDetector {
    watch: Option<Arc<Watch>>,
    quiet: u8,
}

/// What a poll showed.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no third thing")]
pub enum RunPoll<T> {
    /// The run has ended.
    Done(T),
    /// Nothing will happen until a question is answered.
    Parked,
}

/// Stands between a run and its owner's waker, to know whether the run was woken.
pub(crate) struct Watch {
    woken: AtomicBool,
    owner: Mutex<Waker>,
}

impl Watch {
    /// A watch on a run that has not been polled with it yet, and so counts as woken.
    pub(crate) fn new(owner: &Waker) -> Arc<Self> {
        Arc::new(Self { woken: AtomicBool::new(true), owner: Mutex::new(owner.clone()) })
    }

    /// Whom to wake from now on.
    pub(crate) fn set_owner(&self, owner: &Waker) {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner).clone_from(owner);
    }

    /// Whether the run was woken since this was last asked.
    pub(crate) fn take(&self) -> bool {
        self.woken.swap(false, Ordering::AcqRel)
    }

    /// Whether the run has been woken.
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
    /// Polls the work, if there is a reason to. `waits_for_answers` is asked after a poll: whether
    /// answers are all that the run waits for.
    pub fn poll<F: Future>(
        &mut self,
        work: Pin<&mut F>,
        cx: &mut Context<'_>,
        waits_for_answers: impl FnOnce() -> bool,
    ) -> Poll<RunPoll<F::Output>> {
        let Some(watch) = &self.watch else {
            if let Poll::Ready(output) = work.poll(cx) {
                return Poll::Ready(RunPoll::Done(output));
            }
            if waits_for_answers() {
                // From now on it matters whether the run is woken. Its wakers are the owner's so
                // far, so it is polled once more, with one that tells.
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
        if !waits_for_answers() {
            return Poll::Pending;
        }
        if self.quiet < QUIET {
            self.quiet += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(RunPoll::Parked)
    }
}

impl fmt::Debug for IdleDetector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns").field("quiet", &self.quiet).finish_non_exhaustive()
    }
}

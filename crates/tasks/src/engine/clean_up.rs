//! What is done after a task that was cancelled or has expired.
//!
//! It is owed from the same transaction on as the task's end, and done under a lease like a run: if
//! the worker is lost in the middle of it, another one does it again. The task has ended all the
//! while, and stays as it has.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

use super::{EngineEvent, Inner, drive::Held};
use crate::store::{ClaimedTask, CleanupState, StoreError};

/// What is done after a task. An error is told to whoever looks at what has happened.
pub type CleanupFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Cleans up after a task that has ended, and says that it is done.
pub(super) async fn clean_up(inner: &Arc<Inner>, claimed: ClaimedTask) {
    let (lease, principal) = (claimed.lease.clone(), claimed.principal.clone());
    let crashes = claimed.crash_count;
    let expected = inner.expect(&lease.task);
    let signals = expected.is_held(lease.epoch, None);
    let held = Held { inner, lease: &lease, principal: &principal };
    let done = match crashes >= inner.config.max_crashes {
        true => Some(Err(format!("its worker was lost {crashes} times in a row"))),
        false => {
            let (mut lost, mut work) =
                (pin!(signals.lost.notified()), pin!(limited(inner, claimed)));
            // Who has lost the task must stop in the middle of it.
            poll_fn(|cx| match lost.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => work.as_mut().poll(cx).map(Some),
            })
            .await
        }
    };
    match done {
        None => held.saw(EngineEvent::Lost),
        Some(done) => {
            if let Err(why) = &done {
                tracing::error!(task = %lease.task, why, "a clean-up failed");
            }
            if held.cleaned_up(CleanupState::Done).await {
                held.saw(EngineEvent::CleanedUp(done.as_ref().map_err(String::as_str).copied()));
            }
        }
    }
}

/// Does it, for as long as it may take. A panic is a failure like any other.
async fn limited(inner: &Inner, claimed: ClaimedTask) -> Result<(), String> {
    let limit = inner.config.cleanup_timeout;
    let started = catch_unwind(AssertUnwindSafe(|| inner.runner.clean_up(claimed)));
    let Ok(started) = started else { return Err("it panicked".to_owned()) };
    // What was to be done is not there any more.
    let Some(work) = started else { return Ok(()) };
    let contained = Contained(Some(work));
    match timeout(limit, contained).await {
        Ok(done) => done,
        Err(_) => Err(format!("it was not done within {limit:?}")),
    }
}

/// A future whose panics, and those of its destructors, go no further.
struct Contained(Option<CleanupFuture>);

impl Future for Contained {
    type Output = Result<(), String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.0 else { return Poll::Ready(Ok(())) };
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(Err("it panicked".to_owned())))
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let work = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
    }
}

impl Held<'_> {
    /// Says how far the clean-up is, and tries again while the store cannot be used and the lease
    /// may last. `false` if somebody else has it, or none is owed.
    pub(super) async fn cleaned_up(&self, now: CleanupState) -> bool {
        let Self { inner, lease, .. } = self;
        let began = Instant::now();
        let mut pause = Duration::from_millis(50);
        loop {
            match inner.store.finish_cleanup(lease, now).await {
                Ok(()) => return true,
                Err(StoreError::LeaseLost) => return false,
                Err(error) => {
                    tracing::warn!(task = %lease.task, %error, "a clean-up could not be written");
                    if began.elapsed() + pause > inner.config.lease_duration {
                        return false;
                    }
                    sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(2));
                }
            }
        }
    }
}

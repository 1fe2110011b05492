//! The cleanup after a task that was cancelled or has expired.
//!
//! The transaction that ends the task makes its cleanup due. A worker runs it under a lease, like a run:
//! if the worker crashes, another one runs it again. The task itself has ended and does not change.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use tokio::time::timeout;

use super::{events::EngineEvent, leased::LeasedTask, runner::CleanupFuture, state::EngineState};
use crate::store::{ClaimedTask, CleanupState};

/// Runs the cleanup of an ended task, and writes that it is done.
pub(super) async fn clean_up(engine: &Arc<EngineState>, claimed: ClaimedTask) {
    let (lease, principal) = (claimed.lease.clone(), claimed.principal.clone());
    let crashes = claimed.crash_count;
    let registration = engine.register(&lease.task);
    let signals = registration.set_leased(lease.epoch, None);
    let leased = LeasedTask { engine, lease: &lease, principal: &principal };
    let done = match crashes >= engine.config.max_crashes {
        true => Some(Err(format!("its worker was lost {crashes} times in a row"))),
        false => {
            let (mut lost, mut work) =
                (pin!(signals.lost.notified()), pin!(limited(engine, claimed)));
            // A worker that has lost the lease must stop at once.
            poll_fn(|cx| match lost.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => work.as_mut().poll(cx).map(Some),
            })
            .await
        }
    };
    match done {
        None => leased.observe(EngineEvent::LeaseLost),
        Some(done) => {
            if let Err(why) = &done {
                tracing::error!(task_id = %lease.task, error = why, "a clean-up failed");
            }
            if leased.set_cleanup(CleanupState::Done).await {
                let done = done.as_ref().map_err(String::as_str).copied();
                leased.observe(EngineEvent::Cleanup(done));
            }
        }
    }
}

/// Runs the cleanup until its timeout. A panic is a failure like any other.
async fn limited(engine: &EngineState, claimed: ClaimedTask) -> Result<(), String> {
    let limit = engine.config.cleanup_timeout;
    let started = catch_unwind(AssertUnwindSafe(|| engine.runner.clean_up(claimed)));
    let Ok(started) = started else { return Err("it panicked".to_owned()) };
    // The handler has no cleanup any more.
    let Some(work) = started else { return Ok(()) };
    let contained = Contained(Some(work));
    match timeout(limit, contained).await {
        Ok(done) => done,
        Err(_) => Err(format!("it was not done within {limit:?}")),
    }
}

/// A cleanup whose panics, and those of its destructors, are caught.
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

//! Cleanup after a cancelled or expired task.
//!
//! The transaction that ends the task makes its cleanup due. A worker executes the cleanup under a
//! lease, so another worker repeats it after a crash. The ended task itself does not change.

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

/// Executes the cleanup of an ended task, and records the end of the cleanup.
pub(super) async fn clean_up(engine: &Arc<EngineState>, claimed: ClaimedTask) {
    let (lease, principal) = (claimed.lease.clone(), claimed.principal.clone());
    let crashes = claimed.crash_count;
    let registration = engine.register(&lease.task);
    let signals = registration.set_leased(lease.epoch, None);
    let leased = LeasedTask { engine, lease: &lease, principal: &principal };
    let done = match crashes >= engine.config.max_crashes {
        true => Some(Err(format!("its worker crashed {crashes} times in a row"))),
        false => {
            let (mut lost, mut work) =
                (pin!(signals.lost.notified()), pin!(limited(engine, claimed)));
            // A worker that has lost the lease must stop immediately.
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
                tracing::error!(task_id = lease.task.prefix(), error = why, "cleanup failed");
            }
            if leased.set_cleanup(CleanupState::Done).await {
                let done = done.as_ref().map_err(String::as_str).copied();
                leased.observe(EngineEvent::Cleanup(done));
            }
        }
    }
}

/// Executes the cleanup until its timeout. A panic counts as a failure.
async fn limited(engine: &EngineState, claimed: ClaimedTask) -> Result<(), String> {
    let limit = engine.config.cleanup_timeout;
    let started = catch_unwind(AssertUnwindSafe(|| engine.runner.clean_up(claimed)));
    let Ok(started) = started else { return Err("the cleanup panicked".to_owned()) };
    // The current version of the handler has no cleanup.
    let Some(work) = started else { return Ok(()) };
    let contained = Contained(Some(work));
    match timeout(limit, contained).await {
        Ok(done) => done,
        Err(_) => Err(format!("the cleanup did not finish within {limit:?}")),
    }
}

/// A cleanup whose panics, including those of its destructors, are caught.
struct Contained(Option<CleanupFuture>);

impl Future for Contained {
    type Output = Result<(), String>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.0 else { return Poll::Ready(Ok(())) };
        catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(Err("the cleanup panicked".to_owned())))
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let work = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(work)));
    }
}

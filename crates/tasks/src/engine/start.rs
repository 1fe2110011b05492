//! Starts a claimed task, and registers its run.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    sync::Arc,
    time::Duration,
};

use tracing::{Instrument, Span, field::Empty};

use super::{
    capacity::RunRegistration,
    cleanup::clean_up,
    drive::{self, Exit},
    events::EngineEvent,
    leased::{LeasedTask, internal},
    runner::{StartError, TaskRun},
    state::{EngineState, Running},
};
use crate::{
    JournalEntry,
    store::{Changes, ClaimedTask, Lease, TaskId, TaskOutcome, Transition},
    time::{millis, wall_clock},
};

/// Returns the span `task.run` of one run. The span follows from the caller's span and has no
/// parent, because a run may outlive the call that created its task.
pub(super) fn run_span(engine: &EngineState, task: &TaskId, tool: &str) -> Span {
    let worker_id = engine.worker_id.as_str();
    let span = tracing::debug_span!(
        parent: None,
        "task.run",
        task_id = task.prefix(),
        tool,
        worker_id,
        epoch = Empty,
    );
    if !span.is_disabled() {
        span.follows_from(Span::current());
    }
    span
}

/// Starts a task that this worker has claimed or created.
pub(super) async fn start(
    engine: &Arc<EngineState>,
    claimed: ClaimedTask,
    registration: Option<RunRegistration>,
    span: Span,
) {
    if *engine.stopping.borrow() {
        // `Engine::drain` releases this task with all others.
        return;
    }
    if claimed.ended.is_some() {
        return Box::pin(clean_up(engine, claimed)).await;
    }
    let lease = claimed.lease.clone();
    let principal = claimed.principal.clone();
    let crashes = claimed.crash_count;
    if claimed.lost && !claimed.cancel_requested && crashes < engine.config.max_crashes {
        let delay = engine.config.backoff_after(crashes, random());
        if !delay.is_zero() {
            return Box::pin(back_off(engine, &claimed, delay)).await;
        }
    }
    let event = EngineEvent::Claimed { again: claimed.started, crashes };
    engine.observe(&principal, &lease.task, event);
    let started = if claimed.cancel_requested {
        Err(StartError { outcome: TaskOutcome::Cancelled, quarantine: false })
    } else if crashes >= engine.config.max_crashes {
        let why =
            format!("its worker crashed {crashes} times in a row; the task is not started again");
        tracing::error!(
            task_id = lease.task.prefix(),
            crashes,
            "task keeps crashing its workers and is stopped"
        );
        Err(StartError { outcome: TaskOutcome::Error(internal(why)), quarantine: true })
    } else {
        if let Some(prepared) = engine.runner.prepare(&claimed) {
            prepared.await;
        }
        engine.runner.start(claimed)
    };
    match started {
        Ok(run) => {
            let has_slot = true;
            self::run(engine, lease, principal, (run, has_slot), registration, span).await;
        }
        Err(StartError { outcome, quarantine }) => {
            let task = LeasedTask { engine, lease: &lease, principal: &principal };
            let over = engine.config.over(outcome, quarantine);
            Box::pin(task.commit_end(Changes::default(), over, None)).await;
        }
    }
}

/// Runs a task until it ends, is parked, or loses its lease. `run` is the run, and whether it
/// occupies a slot.
pub(super) async fn run(
    engine: &Arc<EngineState>,
    lease: Lease,
    principal: String,
    (run, has_slot): (TaskRun, bool),
    registration: Option<RunRegistration>,
    span: Span,
) {
    // A claimed task may have changed before it was registered.
    let look = registration.is_none();
    let registration = registration.unwrap_or_else(|| engine.register(&lease.task));
    let journal = Arc::clone(&run.journal);
    let running = Running { principal: principal.as_str().into(), journal, has_slot };
    let signals = registration.set_leased(lease.epoch, Some(running));
    let task = LeasedTask { engine, lease: &lease, principal: &principal };
    span.record("epoch", lease.epoch);
    let exit = drive::drive(task, run, &signals, look).instrument(span).await;
    drop(registration);
    engine.notify_readers(&lease.task);
    match exit {
        // The task may already be due again.
        Exit::Waiting => engine.due.notify_one(),
        Exit::NoPermit(capacity) => {
            let claimant = Arc::downgrade(engine);
            capacity.wait(&principal, lease.task, claimant);
        }
        Exit::Over => {}
    }
}

/// Parks a task for its backoff after repeated crashes.
async fn back_off(engine: &EngineState, claimed: &ClaimedTask, delay: Duration) {
    let task = LeasedTask { engine, lease: &claimed.lease, principal: &claimed.principal };
    let entries = claimed.journal.entries.values();
    let seen = entries.filter(|entry| matches!(entry, JournalEntry::Answer(_))).count();
    let due = Some(wall_clock().saturating_add(millis(delay)));
    if task
        .commit(Changes::default(), Transition::Park { due_at: due, responses_seen: seen })
        .await
        .is_leased()
    {
        let id = &claimed.lease.task;
        let (crashes, delay_ms) = (claimed.crash_count, millis(delay));
        tracing::warn!(
            task_id = id.prefix(),
            crashes,
            delay_ms,
            "worker of a task crashed again; the task waits for its backoff"
        );
        task.observe(EngineEvent::Backoff(delay));
    }
}

/// Returns a random number for the jitter of a backoff.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

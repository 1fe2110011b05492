//! The events of an engine, for metrics and the audit log.

use std::time::Duration;

use crate::store::{SweepReport, TaskId, TaskOutcome};

/// Something that has happened to a task.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EngineEvent<'a> {
    /// The task was created.
    Created,
    /// The task starts here.
    Claimed {
        /// Whether it has run before.
        again: bool,
        /// How many of its workers crashed in a row without a new journal entry.
        crashes: u32,
    },
    /// The task is parked for this time, because its workers crashed in a row.
    Backoff(Duration),
    /// A run became a task.
    Promoted,
    /// Changes of a run were written in this time.
    Written(Duration),
    /// The task is parked.
    Parked,
    /// The task is released to other workers, because this one stops or the run asked for it.
    Released,
    /// The task is quarantined, and ends with this outcome if no operator retries it.
    Quarantined(&'a TaskOutcome),
    /// The task has ended.
    Ended(&'a TaskOutcome),
    /// The cleanup of the task is done, or has failed.
    Cleanup(Result<(), &'a str>),
    /// This worker has lost its lease on the task.
    LeaseLost,
    /// The client left before it got the task's ID.
    Unacknowledged,
}

/// Gets the events of an engine. Must not block.
pub trait EngineObserver: Send + Sync + 'static {
    /// Gets an event of a task.
    fn seen(&self, principal: &str, task: &TaskId, seen: EngineEvent<'_>);

    /// Gets the result of a sweep.
    fn swept(&self, swept: &SweepReport);
}

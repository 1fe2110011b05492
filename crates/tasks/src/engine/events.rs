//! Events of an engine, for metrics and the audit log.

use std::time::Duration;

use crate::store::{SweepReport, TaskId, TaskOutcome};

/// An event of a task.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EngineEvent<'a> {
    /// The task was created.
    Created,
    /// A worker in this process starts the task.
    Claimed {
        /// Whether the task has run before.
        again: bool,
        /// Number of crashes in a row without a new journal entry.
        crashes: u32,
    },
    /// The task waits for this backoff after repeated crashes.
    Backoff(Duration),
    /// An inline run was promoted to the task.
    Promoted,
    /// Changes were committed; the commit took this long.
    Written(Duration),
    /// The task is parked.
    Parked,
    /// The task is released to other workers, because this worker stops or the run yields.
    Released,
    /// The task is quarantined. It ends with this outcome if no operator retries it.
    Quarantined(&'a TaskOutcome),
    /// The task has ended.
    Ended(&'a TaskOutcome),
    /// The cleanup of the task succeeded or failed.
    Cleanup(Result<(), &'a str>),
    /// This worker has lost its lease on the task.
    LeaseLost,
    /// The client disconnected before it received the task ID.
    Unacknowledged,
}

/// Receives the events of an engine. The methods must not block.
pub trait EngineObserver: Send + Sync + 'static {
    /// Called for each event of a task.
    fn seen(&self, principal: &str, task: &TaskId, seen: EngineEvent<'_>);

    /// Called with the result of each sweep.
    fn swept(&self, swept: &SweepReport);
}

//! What an engine tells of what it does, for those who count it or write it down.

use std::time::Duration;

use crate::store::{SweepReport, TaskId, TaskOutcome};

/// Something that has happened.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum EngineEvent<'a> {
    /// A task was made.
    Created,
    /// A task is begun here, or begun again.
    Claimed {
        /// Whether it has run before.
        again: bool,
        /// How many workers it has lost in a row without recording anything.
        crashes: u32,
    },
    /// A task that has lost workers in a row is not begun again before this time is over.
    Postponed(Duration),
    /// A run that had begun before has become a task.
    Adopted,
    /// What a run has recorded was written, and that took so long.
    Written(Duration),
    /// A task waits without a worker.
    Parked,
    /// A task was given to other workers, because this one stops or its run asked for it.
    HandedOver,
    /// A task was stopped, and is kept for an operator; it ends so if nobody has it tried again.
    Kept(&'a TaskOutcome),
    /// A task has ended.
    Ended(&'a TaskOutcome),
    /// What was to be done after a task that was cancelled or has expired is done, or has failed.
    CleanedUp(Result<(), &'a str>),
    /// A task is not this worker's any more.
    Lost,
    /// Whoever asked for a task had left before it could be told of it.
    Undelivered,
}

/// Hears what an engine does. Must not block.
pub trait EngineObserver: Send + Sync + 'static {
    /// Something has happened to a task.
    fn seen(&self, principal: &str, task: &TaskId, seen: EngineEvent<'_>);

    /// Tasks were ended because their time was over, or forgotten.
    fn swept(&self, swept: &SweepReport);
}

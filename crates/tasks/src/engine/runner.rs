//! What the engine runs: the interface to the handlers of tasks.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use crate::{
    Journal,
    store::{ClaimedTask, TaskOutcome},
};

/// A handler's future, which ends with the outcome of its task.
pub type Work = Pin<Box<dyn Future<Output = TaskOutcome> + Send>>;

/// The cleanup after a task. The audit log records an error.
pub type CleanupFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Starts the handlers of tasks. The engine decides when, the runner decides what.
pub trait TaskRunner: Send + Sync + 'static {
    /// Starts a task, or replays it over its journal. Must not block.
    ///
    /// # Errors
    ///
    /// Returns how the task ends if it must not run: its handler does not exist any more, or must not
    /// be executed twice.
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError>;

    /// Returns how many bytes a principal may have stored now; `None` for any number. Must not block.
    fn allowance(&self, _principal: &str) -> Option<Allowance> {
        None
    }

    /// Starts the cleanup after a task that was cancelled or has expired; `None` if the task has none.
    /// Must not block.
    fn clean_up(&self, _claimed: ClaimedTask) -> Option<CleanupFuture> {
        None
    }
}

/// How many bytes a principal may have stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "made by the floor above")]
pub struct Allowance {
    /// The number of bytes.
    pub max_bytes: u64,
    /// The name of the limit, for error messages.
    pub limit: &'static str,
}

/// Outcome of a task that the runner does not start.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "made by the floor above")]
pub struct StartError {
    /// The outcome.
    pub outcome: TaskOutcome,
    /// Whether the task is quarantined first, so that an operator can retry it.
    pub quarantine: bool,
}

/// One run of a task.
pub struct TaskRun {
    /// The journal that the run records to.
    pub journal: Arc<Journal>,
    /// The handler's future.
    pub work: Work,
    /// Asks the handler to stop.
    pub cancel: Box<dyn Fn() + Send + Sync>,
    /// Whether another worker can continue the task from its journal.
    pub resumes: bool,
    /// Whether the task has a cleanup.
    pub cleans_up: bool,
}

impl fmt::Debug for TaskRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRun").field("journal", &self.journal).finish_non_exhaustive()
    }
}

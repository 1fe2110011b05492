//! [`TaskRunner`]: the interface between the engine and the handlers of tasks.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use outlive_wire::RawJson;

use crate::{
    Journal,
    store::{ClaimedTask, ResultPart, TaskOutcome},
};

/// Future of a handler, which resolves to the outcome of its task.
pub type Work = Pin<Box<dyn Future<Output = TaskOutcome> + Send>>;

/// Future of the preparation of a task's start.
pub type PrepareFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Future of a cleanup. The audit log records an error.
pub type CleanupFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Shortens a result that exceeds the stored bytes of its principal. Gets the outcome with its
/// parts, and the name of the limit. Must return a small result, because it is stored regardless of
/// the limit. Returns `None` if the task must end with an error.
pub type ReduceResult =
    Arc<dyn Fn(&TaskOutcome, &[ResultPart], &'static str) -> Option<RawJson> + Send + Sync>;

/// Starts the handlers of tasks. The engine decides when a handler starts, and the runner decides
/// which one.
pub trait TaskRunner: Send + Sync + 'static {
    /// Reads what [`TaskRunner::start`] needs and memory does not have. The engine waits for it
    /// before it starts the task. Returns `None` if nothing is missing. Must not block.
    fn prepare(&self, _claimed: &ClaimedTask) -> Option<PrepareFuture> {
        None
    }

    /// Starts a task, or replays it over its journal. Must not block.
    ///
    /// # Errors
    ///
    /// Returns the outcome of a task that must not run. Its handler may no longer exist, or may not
    /// allow a second execution.
    fn start(&self, claimed: ClaimedTask) -> Result<TaskRun, StartError>;

    /// Returns the limit of stored bytes of a principal; `None` without a limit. Must not block.
    fn allowance(&self, _principal: &str) -> Option<Allowance> {
        None
    }

    /// Starts the cleanup after a cancelled or expired task. Returns `None` if the task has no
    /// cleanup. Must not block.
    fn clean_up(&self, _claimed: ClaimedTask) -> Option<CleanupFuture> {
        None
    }
}

/// Limit of the bytes that a principal may store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "built by the upper layer")]
pub struct Allowance {
    /// Maximum number of bytes.
    pub max_bytes: u64,
    /// Name of the limit, for error messages.
    pub limit: &'static str,
    /// Whether the engine may delete delivered results of the principal to make room. Callers that
    /// share a principal must not delete each other's results.
    pub evicts: bool,
}

/// Outcome of a task that the runner does not start.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the upper layer")]
pub struct StartError {
    /// Outcome of the task.
    pub outcome: TaskOutcome,
    /// Whether to quarantine the task first, so that an operator can retry it.
    pub quarantine: bool,
}

/// One run of a task.
pub struct TaskRun {
    /// Journal of the task.
    pub journal: Arc<Journal>,
    /// Future of the handler.
    pub work: Work,
    /// Requests that the handler stops.
    pub cancel: Box<dyn Fn() + Send + Sync>,
    /// Whether another worker can continue the task from its journal.
    pub resumes: bool,
    /// Whether the task has a cleanup.
    pub cleans_up: bool,
    /// Shortens a result that cannot be stored. Without it, the task ends with an error.
    pub reduce: Option<ReduceResult>,
}

impl fmt::Debug for TaskRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRun").field("journal", &self.journal).finish_non_exhaustive()
    }
}

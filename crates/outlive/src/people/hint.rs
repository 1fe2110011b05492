//! Data from which a page decides whether to load a task again.

use outlive_tasks::store::{PageLimit, TaskId, TaskState, UnixMillis};

use super::{error::PeopleError, roles::Visitor, state::People};

/// A sequence number that no segment reaches, so that a read returns no segment.
const AFTER_ALL: u64 = i64::MAX as u64;

/// State of a task, without its contents.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskHint {
    /// State of the task.
    pub state: TaskState,
    /// Time of its last change.
    pub updated_at: UnixMillis,
    /// Sequence number of its last segment; zero if the visitor may not see the contents.
    pub last_segment: u64,
}

impl People {
    /// Returns the state of a task. Reads neither its journal nor its result.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task.
    pub async fn hint(&self, visitor: &Visitor, id: &TaskId) -> Result<TaskHint, PeopleError> {
        let task = self.find_task(visitor, id).await?;
        let (state, updated_at) = (task.state, task.summary.view.updated_at);
        let mut hint = TaskHint { state, updated_at, last_segment: 0 };
        if visitor.sees_contents(&task) {
            let (principal, limit) = (&task.summary.principal, PageLimit::new(1, 1));
            let page = self.store().read_segments(principal, id, AFTER_ALL, limit).await?;
            hint.last_segment = page.ok_or(PeopleError::NotFound)?.last;
        }
        Ok(hint)
    }
}

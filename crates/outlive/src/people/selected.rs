//! The same action on tasks that an operator selects one by one.

use outlive_tasks::store::{IndexedTask, TaskId};

use super::{
    bulk::{BulkAction, checked_name},
    error::PeopleError,
    roles::Visitor,
    state::{MAX_PAGE, People},
    tasks::hide_contents,
};

impl People {
    /// Returns the tasks with these IDs that the visitor sees, at most 200.
    ///
    /// # Errors
    ///
    /// If the store cannot be read.
    pub async fn selected(
        &self,
        visitor: &Visitor,
        ids: &[TaskId],
    ) -> Result<Vec<IndexedTask>, PeopleError> {
        let mut tasks = Vec::new();
        for id in ids.iter().take(MAX_PAGE) {
            match self.find_task(visitor, id).await {
                Ok(mut task) => {
                    hide_contents(visitor, &mut task);
                    tasks.push(task);
                }
                Err(PeopleError::NotFound) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(tasks)
    }

    /// Performs an action on selected tasks, at most 200, under a name in the audit log. Returns the
    /// number of tasks that changed. For operators.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](PeopleError::Forbidden) for other roles, [`Invalid`](PeopleError::Invalid) if
    /// the name is invalid. Tasks before a failed one stay changed; a repeated action changes only
    /// the others.
    pub async fn act_on_selected(
        &self,
        visitor: &Visitor,
        action: BulkAction,
        ids: &[TaskId],
        name: &str,
    ) -> Result<usize, PeopleError> {
        visitor.require_operator()?;
        let name = checked_name(name)?;
        let mut changed = 0;
        for task in self.selected(visitor, ids).await? {
            changed += usize::from(self.act(visitor, action, &name, &task).await?);
        }
        Ok(changed)
    }
}

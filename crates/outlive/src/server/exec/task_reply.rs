//! A task as the outcome of a call.

use std::time::Duration;

use outlive_protocol::{Outcome, ProtocolError, TaskState, TaskView};
use outlive_tasks::{engine::UnacknowledgedTask, store::TaskId};

use crate::server::{
    env::{task_backend::TaskBackend, task_error::unavailable},
    exec::executable::Executable,
    extract::cx::Cx,
    time::millis,
};

/// Returns a committed task as the outcome. If the client has disconnected, the task is cancelled,
/// unless it has an idempotency key.
pub(crate) fn created(
    tasks: &TaskBackend,
    target: &Executable,
    ttl: Option<Duration>,
    task: UnacknowledgedTask,
) -> Outcome {
    let view = TaskView {
        id: task.task().as_str().to_owned(),
        created: task.created_at(),
        updated: task.created_at(),
        ttl: ttl.map(millis),
        poll: millis(tasks.config.poll),
        message: None,
        progress: None,
        immediate: target.policy.immediate_response.clone(),
        fell_back: false,
        // A new task is shown as `working`, even if it has progressed.
        state: TaskState::Working,
    };
    task.acknowledge();
    Outcome::Task(Box::new(view))
}

/// Returns an existing task as the outcome, or `None` if it was deleted.
pub(crate) async fn existing(
    cx: &Cx,
    target: &Executable,
    id: &TaskId,
) -> Result<Option<Outcome>, ProtocolError> {
    let tasks = cx.env().tasks()?;
    let view = tasks.engine().get(cx.principal().key(), id).await;
    let shown = view.map_err(|error| unavailable(&error))?.map(|view| {
        let immediate = target.policy.immediate_response.clone();
        Outcome::Task(Box::new(TaskView { immediate, ..tasks.show(view) }))
    });
    Ok(shown)
}

//! Finds the task that a request names.

use std::time::Duration;

use outlive_protocol::{Call, ClientTaskSupport, ProtocolError, TaskView, era};
use outlive_tasks::store::{StoreError, TaskId, TaskOutcome, TaskRecord};

use crate::server::{
    caller_key::caller_key,
    env::{
        environment::Env,
        task_backend::TaskBackend,
        task_error::{unavailable, unknown_task},
    },
    random::is_task_id,
};

/// Poll interval of a client's wait, in case a change notification is lost.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// Returns the current view of a task for a subscription. Returns `None` if the principal has no
/// such task.
pub(crate) async fn look_at(
    env: &Env,
    call: &Call,
    id: &TaskId,
) -> Result<Option<TaskView>, ProtocolError> {
    let tasks = env.tasks()?;
    if !is_task_id(id.as_str()) {
        return Ok(None);
    }
    let view = tasks.engine().get(call.principal().key(), id).await;
    let view = view.map_err(|error| unavailable(&error))?.filter(|view| view.acknowledged);
    Ok(view.map(|view| tasks.show(view)))
}

/// Returns the task ID of a request, after it has checked the client's capability and the poll
/// rate.
pub(crate) fn meant<'c>(
    env: &'c Env,
    call: &Call,
) -> Result<(&'c TaskBackend, TaskId), ProtocolError> {
    let tasks = env.tasks()?;
    gate(call)?;
    let id = call.task_id()?;
    if !is_task_id(&id) {
        env.counters.lookups_denied.add(1);
        return Err(unknown_task());
    }
    let id = TaskId::new(id);
    slow_down(env, tasks, call, &id)?;
    Ok((tasks, id))
}

/// Rejects a caller that exceeds its poll rate.
pub(crate) fn slow_down(
    env: &Env,
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
) -> Result<(), ProtocolError> {
    match tasks.polls.enter(&caller_key(call), env.profile.clock.now()) {
        Ok(_) => Ok(()),
        Err(busy) => {
            env.counters.polls_rate_limited.add(1);
            tasks.count(call, id, "polled-too-often");
            Err(ProtocolError::OverLimit {
                limit: "poll_rate".into(),
                retry_after: busy.retry_after,
            })
        }
    }
}

/// Checks that the client declares task support. Runs before all other checks.
pub(crate) fn gate(call: &Call) -> Result<(), ProtocolError> {
    match era::codec(call.rules().era).task_request(call)?.support {
        ClientTaskSupport::NotDeclared => {
            Err(ProtocolError::MissingCapability { required: era::tasks_capability() })
        }
        _ => Ok(()),
    }
}

/// Returns the record of a task that the caller sees, with its whole result.
pub(crate) async fn look(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
) -> Result<TaskRecord, ProtocolError> {
    let found = tasks.engine().get(call.principal().key(), id).await;
    seen(tasks, call, id, found)
}

/// Returns the record of a task that the caller sees. Does not read the parts of a large result.
pub(crate) async fn look_without_parts(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
) -> Result<TaskRecord, ProtocolError> {
    let found = tasks.engine().store().get(call.principal().key(), id).await;
    seen(tasks, call, id, found)
}

/// Returns an outcome of a task with its whole result.
pub(crate) async fn whole(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    outcome: TaskOutcome,
) -> Result<TaskOutcome, ProtocolError> {
    match outcome {
        TaskOutcome::LargeResult(_) => {
            look(tasks, call, id).await?.outcome.ok_or_else(unknown_task)
        }
        small => Ok(small),
    }
}

fn seen(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
    found: Result<Option<TaskRecord>, StoreError>,
) -> Result<TaskRecord, ProtocolError> {
    let found = found.map_err(|error| unavailable(&error))?;
    let found = found.filter(|view| view.acknowledged && call.rules().sees_task(&view.origin));
    found.ok_or_else(|| {
        tasks.counters.lookups_denied.add(1);
        tasks.count(call, id, "look-up-denied");
        unknown_task()
    })
}

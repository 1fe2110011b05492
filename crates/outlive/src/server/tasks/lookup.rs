//! How a method finds the task that it names.

use std::time::Duration;

use outlive_protocol::{Call, ClientTaskSupport, ProtocolError, TaskView, era};
use outlive_tasks::store::{TaskId, TaskRecord};

use crate::server::{
    caller_key::caller_key,
    env::{
        environment::Env,
        task_backend::TaskBackend,
        task_error::{unavailable, unknown_task},
    },
};

/// How often it looks by itself, should nobody tell it.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// A task that a subscription may hear of, as it is now; `None` for one that is not this caller's.
pub(crate) async fn look_at(
    env: &Env,
    call: &Call,
    id: &TaskId,
) -> Result<Option<TaskView>, ProtocolError> {
    let tasks = env.tasks()?;
    if !is_ours(id.as_str()) {
        return Ok(None);
    }
    let view = tasks.engine().get(call.principal().key(), id).await;
    Ok(view.map_err(|error| unavailable(&error))?.map(|view| tasks.show(view)))
}

/// The task that a call is about, once its caller may ask for tasks at all.
pub(crate) fn meant<'c>(
    env: &'c Env,
    call: &Call,
) -> Result<(&'c TaskBackend, TaskId), ProtocolError> {
    let tasks = env.tasks()?;
    gate(call)?;
    let id = call.task_id()?;
    if !is_ours(&id) {
        env.counters.lookups_denied.add(1);
        return Err(unknown_task());
    }
    let id = TaskId::new(id);
    slow_down(env, tasks, call, &id)?;
    Ok((tasks, id))
}

/// Whether an id has the shape of those that we give out. No other is looked for, counted by the
/// store or written down: it may be anything, and of any length.
fn is_ours(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses a caller who asks too often.
fn slow_down(
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

/// A caller that did not say that it knows tasks is told to, before anything else.
pub(crate) fn gate(call: &Call) -> Result<(), ProtocolError> {
    match era::codec(call.rules().era).task_request(call)?.support {
        ClientTaskSupport::NotDeclared => {
            Err(ProtocolError::MissingCapability { required: era::tasks_capability() })
        }
        _ => Ok(()),
    }
}

pub(crate) async fn look(
    tasks: &TaskBackend,
    call: &Call,
    id: &TaskId,
) -> Result<TaskRecord, ProtocolError> {
    let view = tasks.engine().get(call.principal().key(), id).await;
    let view = view.map_err(|error| unavailable(&error))?;
    let view = view.filter(|view| call.rules().sees_task(&view.origin));
    view.ok_or_else(|| {
        tasks.counters.lookups_denied.add(1);
        tasks.count(call, id, "look-up-denied");
        unknown_task()
    })
}

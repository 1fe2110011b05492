//! The methods of tasks, of both dialects.

use std::{collections::HashMap, sync::Arc};

use outlive_protocol::{
    Call, CallFuture, ClientTaskSupport, MethodResult, Outcome, ProtocolError, TaskView, era,
};
use outlive_tasks::store::{CancelOutcome, InputSource, TaskId, TaskRecord};
use outlive_wire::{CreateMessageResult, ElicitResult, InputRequest, ListRootsResult, RawJson};
use serde::Deserialize;

use super::{Tasks, partials, stream::Streams, unavailable, unknown_task};
use crate::server::core::{Core, caller_key};

/// `tasks/get`: how far a task is. Changes nothing.
pub(in crate::server) fn get(core: &Arc<Core>, call: Arc<Call>) -> CallFuture {
    let core = Arc::clone(core);
    Box::pin(async move {
        let (tasks, id) = meant(&core, &call)?;
        let view = look(tasks, &call, &id).await?;
        if view.outcome.is_some() {
            tasks.note(&call, &id, "retrieved", None);
        }
        if tasks.config.partials
            && let Some(after) = era::codec(call.rules().era).task_request(&call)?.after_seq?
        {
            // After the view: when that has ended, all blocks are there.
            let emitted = Box::new(partials::beside(tasks, &call, &view, after).await?);
            let shown = Box::new(tasks.show(view));
            return Ok(Outcome::Complete(MethodResult::TaskEmitted(shown, emitted)));
        }
        let shown = Streams::seen_from(&call, tasks.show(view));
        Ok(Outcome::Complete(MethodResult::Task(Box::new(shown))))
    })
}

/// `tasks/update`: answers to what a task has asked. Acknowledged when they are stored.
pub(in crate::server) fn update(core: &Arc<Core>, call: Arc<Call>) -> CallFuture {
    let core = Arc::clone(core);
    Box::pin(async move {
        let (tasks, id) = meant(&core, &call)?;
        let Some(text) = call.input_responses() else {
            return Err(ProtocolError::invalid_params("`params.inputResponses` is missing"));
        };
        let answers: HashMap<String, RawJson> = serde_json::from_str(text).map_err(|error| {
            ProtocolError::invalid_params(format!(
                "`params.inputResponses` must be an object: {error}"
            ))
        })?;
        let view = look(tasks, &call, &id).await?;
        for (name, request) in &view.input_requests {
            if let Some(answer) = answers.get(name) {
                check(request, answer).map_err(|why| {
                    ProtocolError::invalid_params(format!(
                        "`params.inputResponses`: `{name}`: {why}"
                    ))
                })?;
            }
        }
        let store = tasks.engine().store();
        let (principal, answers) = (call.principal().key(), answers.into_iter().collect());
        let max_bytes = tasks.allowance(principal).max_bytes;
        let taken = store.respond(principal, &id, InputSource::Client, answers, max_bytes).await;
        match taken.map_err(|error| tasks.refused(&call, &error))? {
            Some(taken) => {
                tasks.note(&call, &id, "updated", Some(format!("{taken} answers were taken")));
                Ok(Outcome::Complete(MethodResult::Empty))
            }
            None => Err(unknown_task()),
        }
    })
}

/// `tasks/cancel`: at once where the answer says so, else when the work has stopped.
pub(in crate::server) fn cancel(core: &Arc<Core>, call: Arc<Call>) -> CallFuture {
    let core = Arc::clone(core);
    Box::pin(async move {
        let (tasks, id) = meant(&core, &call)?;
        let at_once = call.rules().cancels_immediately;
        look(tasks, &call, &id).await?;
        let cancelled = tasks.engine().cancel(call.principal().key(), &id, at_once).await;
        let cancelled = cancelled.map_err(|error| unavailable(&error))?;
        let how = match cancelled {
            Some(CancelOutcome::Cancelled) => Some("cancelled"),
            Some(CancelOutcome::Requested) => Some("cancel-requested"),
            _ => None,
        };
        if cancelled == Some(CancelOutcome::Cancelled) {
            tasks.peers.leave(&id);
        }
        if let Some(how) = how {
            tasks.note(&call, &id, how, Some("its caller wants it".to_owned()));
        }
        match cancelled {
            None => Err(unknown_task()),
            Some(_) if !at_once => Ok(Outcome::Complete(MethodResult::Empty)),
            Some(CancelOutcome::AlreadyEnded) => {
                Err(ProtocolError::invalid_params("the task cannot be cancelled: it has ended"))
            }
            Some(_) => {
                let view = look(tasks, &call, &id).await?;
                Ok(Outcome::Complete(MethodResult::Task(Box::new(tasks.show(view)))))
            }
        }
    })
}

/// A task that a subscription may hear of, as it is now; `None` for one that is not this caller's.
pub(in crate::server) async fn look_at(
    core: &Core,
    call: &Call,
    id: &TaskId,
) -> Result<Option<TaskView>, ProtocolError> {
    let tasks = core.tasks()?;
    if !is_ours(id.as_str()) {
        return Ok(None);
    }
    let view = tasks.engine().view(call.principal().key(), id).await;
    Ok(view.map_err(|error| unavailable(&error))?.map(|view| tasks.show(view)))
}

/// The task that a call is about, once its caller may ask for tasks at all.
pub(super) fn meant<'c>(core: &'c Core, call: &Call) -> Result<(&'c Tasks, TaskId), ProtocolError> {
    let tasks = core.tasks()?;
    gate(call)?;
    let id = call.task_id()?;
    if !is_ours(&id) {
        core.counters.lookups_denied.add(1);
        return Err(unknown_task());
    }
    let id = TaskId::new(id);
    slow_down(core, tasks, call, &id)?;
    Ok((tasks, id))
}

/// Whether an id has the shape of those that we give out. No other is looked for, counted by the
/// store or written down: it may be anything, and of any length.
fn is_ours(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Refuses a caller who asks too often.
fn slow_down(core: &Core, tasks: &Tasks, call: &Call, id: &TaskId) -> Result<(), ProtocolError> {
    match tasks.polls.enter(&caller_key(call), core.profile.clock.now()) {
        Ok(_) => Ok(()),
        Err(busy) => {
            core.counters.polls_rate_limited.add(1);
            tasks.count(call, id, "polled-too-often");
            Err(ProtocolError::OverLimit {
                limit: "poll_rate".into(),
                retry_after: busy.retry_after,
            })
        }
    }
}

/// A caller that did not say that it knows tasks is told to, before anything else.
pub(in crate::server) fn gate(call: &Call) -> Result<(), ProtocolError> {
    match era::codec(call.rules().era).task_request(call)?.support {
        ClientTaskSupport::NotDeclared => {
            Err(ProtocolError::MissingCapability { required: era::tasks_capability() })
        }
        _ => Ok(()),
    }
}

pub(super) async fn look(
    tasks: &Tasks,
    call: &Call,
    id: &TaskId,
) -> Result<TaskRecord, ProtocolError> {
    let view = tasks.engine().view(call.principal().key(), id).await;
    let view = view.map_err(|error| unavailable(&error))?;
    let view = view.filter(|view| call.rules().sees_task(&view.origin));
    view.ok_or_else(|| {
        if let Some(core) = tasks.core.upgrade() {
            core.counters.lookups_denied.add(1);
        }
        tasks.count(call, id, "look-up-denied");
        unknown_task()
    })
}

/// Whether something can be the answer to a question at all.
pub(super) fn check(request: &InputRequest, answer: &RawJson) -> Result<(), String> {
    fn read<'a, T: Deserialize<'a>>(answer: &'a RawJson) -> Result<(), String> {
        serde_json::from_str::<T>(answer.get()).map(drop).map_err(|error| error.to_string())
    }
    match request {
        InputRequest::CreateMessage(_) => read::<CreateMessageResult>(answer),
        InputRequest::ListRoots => read::<ListRootsResult>(answer),
        _ => read::<ElicitResult>(answer),
    }
}

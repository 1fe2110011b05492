//! The methods `tasks/get`, `tasks/update` and `tasks/cancel`, for both eras.

use std::{collections::HashMap, sync::Arc};

use outlive_protocol::{Call, CallFuture, MethodResult, Outcome, ProtocolError, era};
use outlive_tasks::store::{CancelOutcome, InputSource, OpenInput};
use outlive_wire::RawJson;

use crate::server::{
    env::{
        environment::Env,
        task_error::{unavailable, unknown_task},
    },
    run::input::check_response,
    tasks::{
        lookup::{look, look_without_parts, meant},
        segments,
        streaming::Streams,
    },
};

/// Handles `tasks/get`: returns the state of a task without changing it.
pub(crate) fn get(env: &Arc<Env>, call: Arc<Call>) -> CallFuture {
    let env = Arc::clone(env);
    Box::pin(async move {
        let (tasks, id) = meant(&env, &call)?;
        let view = look(tasks, &call, &id).await?;
        if view.outcome.is_some() {
            tasks.note(&call, &id, "retrieved", None);
        }
        if tasks.config.partials
            && let Some(after) = era::codec(call.rules().era).task_request(&call)?.after_seq?
        {
            // Segments are read after the record: if the record is terminal, all segments are
            // stored.
            let emitted = Box::new(segments::beside(tasks, &call, &view, after).await?);
            let shown = Box::new(tasks.show(view));
            return Ok(Outcome::Complete(MethodResult::TaskEmitted(shown, emitted)));
        }
        let shown = Streams::seen_from(&call, tasks.show(view));
        Ok(Outcome::Complete(MethodResult::Task(Box::new(shown))))
    })
}

/// Handles `tasks/update`: stores input responses. The acknowledgment follows the commit.
pub(crate) fn update(env: &Arc<Env>, call: Arc<Call>) -> CallFuture {
    let env = Arc::clone(env);
    Box::pin(async move {
        let (tasks, id) = meant(&env, &call)?;
        let Some(text) = call.input_responses() else {
            return Err(ProtocolError::invalid_params("`params.inputResponses` is missing"));
        };
        let answers: HashMap<String, RawJson> = serde_json::from_str(text).map_err(|error| {
            ProtocolError::invalid_params(format!(
                "`params.inputResponses` must be an object: {error}"
            ))
        })?;
        let view = look_without_parts(tasks, &call, &id).await?;
        for OpenInput { name, request, .. } in &view.input_requests {
            if let Some(answer) = answers.get(name) {
                check_response(request, answer).map_err(|why| {
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
                tasks.note(&call, &id, "updated", Some(format!("{taken} input responses stored")));
                Ok(Outcome::Complete(MethodResult::Empty))
            }
            None => Err(unknown_task()),
        }
    })
}

/// Handles `tasks/cancel`. The protocol version decides whether the task ends at once or when its
/// handler stops.
pub(crate) fn cancel(env: &Arc<Env>, call: Arc<Call>) -> CallFuture {
    let env = Arc::clone(env);
    Box::pin(async move {
        let (tasks, id) = meant(&env, &call)?;
        let at_once = call.rules().cancels_immediately;
        look_without_parts(tasks, &call, &id).await?;
        let cancelled = tasks.engine().cancel(call.principal().key(), &id, at_once).await;
        let cancelled = cancelled.map_err(|error| unavailable(&error))?;
        let how = match cancelled {
            Some(CancelOutcome::Cancelled) => Some("cancelled"),
            Some(CancelOutcome::Requested) => Some("cancel-requested"),
            _ => None,
        };
        if cancelled == Some(CancelOutcome::Cancelled) {
            // No worker ends the task, so no engine event counts it.
            env.counters.cancelled.add(1);
            tasks.quotas.leave(&id);
        }
        if let Some(how) = how {
            tasks.note(&call, &id, how, Some("cancelled by the client".to_owned()));
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

//! `tasks/result` of 2025-11-25: waits until the task ends and sends its input requests to the
//! client meanwhile. With a sequence number, it returns the segments after that number without
//! waiting.

use std::sync::Arc;

use outlive_protocol::{Call, CallFuture, MethodResult, Notify, Outcome, ProtocolError, TaskState};
use outlive_tasks::store::TaskId;

use crate::server::{
    env::environment::Env,
    tasks::{
        inputs::{Dialogue, take, tell_progress},
        lookup::{LOOK, look, meant},
        segments,
    },
};

/// Handles `tasks/result`.
pub(crate) fn result(env: &Arc<Env>, call: Arc<Call>) -> CallFuture {
    let env = Arc::clone(env);
    Box::pin(async move {
        let (tasks, id) = meant(&env, &call)?;
        if tasks.config.modes.is_some()
            && let Some(rest) = segments::after_number(tasks, &call, &id).await?
        {
            return Ok(Outcome::Complete(MethodResult::Rest(Box::new(rest))));
        }
        let mut dialogue = Dialogue::default();
        let mut told = None;
        let watch = tasks.engine().watch(&id);
        loop {
            let changed = watch.notified();
            let view = look(tasks, &call, &id).await?;
            let questions = view.input_requests.clone();
            tell_progress(&env, &call, &view);
            let shown = tasks.show(view);
            let status = std::mem::discriminant(&shown.state);
            let changed_status = told.replace(status).is_some_and(|before| before != status);
            // The terminal status is the response itself, so no notification is sent for it.
            if changed_status && !shown.state.is_terminal() {
                let bound = env.profile.limits.max_queued_notifications;
                call.port().send(Notify::Task(Box::new(shown.clone())), bound);
            }
            match shown.state {
                TaskState::Working | TaskState::InputRequired(_) => {}
                TaskState::Result(result) => {
                    tasks.note(&call, &id, "retrieved", None);
                    let id = id.as_str().to_owned();
                    return Ok(Outcome::Complete(MethodResult::TaskResult(result, id)));
                }
                TaskState::Error(error) => return Err(ProtocolError::Custom(error)),
                TaskState::Expired => {
                    return Err(ProtocolError::invalid_params("the task has expired"));
                }
                TaskState::Cancelled => return Err(cancelled(&id)),
            }
            dialogue.ask(&env, &call, &id, questions);
            tokio::select! {
                () = changed => {}
                () = tokio::time::sleep(LOOK) => {}
                (name, answer) = dialogue.answered() => {
                    take(tasks, &call, &id, name, answer).await?;
                }
            }
        }
    })
}

fn cancelled(id: &TaskId) -> ProtocolError {
    let data = serde_json::json!({"taskId": id.as_str(), "status": "cancelled"});
    ProtocolError::Custom(outlive_wire::ErrorObject {
        code: outlive_wire::code::INTERNAL,
        message: "the task was cancelled".to_owned(),
        data: serde_json::value::to_raw_value(&data).ok(),
    })
}

//! The tool `task_answer`: the model passes on its user's answer to an input request.
//!
//! It works only where the server or the tool allows it, and never for an input request that a
//! person must answer: the store rejects those.

use std::sync::Arc;

use outlive_protocol::{Call, Outcome, ProtocolError};
use outlive_schema::forms;
use outlive_tasks::store::{InputSource, OpenInput, TaskRecord};
use outlive_wire::{
    ClientCapabilities, ElicitAction, ElicitRequestParams, ElicitResult, InputRequest, RawJson,
};
use serde::Deserialize;
use serde_json::value::to_raw_value;

use crate::server::{
    dispatch::{
        core::ServerCore,
        fallback_task::{answers_by, failed, find, read_arguments, reply, tool_of},
    },
    exec::bridge::no_such_task,
    hosts::{AnswerBy, Hosts, reserved::TASK_RESULT},
    register::registered_tool::RegisteredTool,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    task: String,
    input_request: Option<String>,
    action: ElicitAction,
    content: Option<RawJson>,
}

/// Returns whether the tool is listed: the client declares no elicitation, and a tool that the
/// caller sees accepts answers by tool. The tools of a catalog count as a whole.
pub(crate) fn is_listed(core: &ServerCore, call: &Call, hosts: &Hosts) -> bool {
    let declared: ClientCapabilities =
        serde_json::from_str(call.client_capabilities()).unwrap_or_default();
    let accepts =
        |answers: Option<&[AnswerBy]>| hosts.answers_of(answers).contains(&AnswerBy::Tool);
    let registered = &core.registered.tools;
    let accepting =
        |tool: &Arc<RegisteredTool>| accepts(tool.exec.policy.answers.as_deref()).then_some(());
    declared.elicitation.is_none()
        && (core.catalog.is_some() && accepts(None)
            || registered.find(call.principal(), accepting).is_some())
}

/// Handles a call of `task_answer`.
pub(crate) async fn task_answer(
    core: Arc<ServerCore>,
    call: Arc<Call>,
) -> Result<Outcome, ProtocolError> {
    let arguments: Arguments = match read_arguments(&call)? {
        Ok(arguments) => arguments,
        Err(reply) => return Ok(reply),
    };
    let env = &core.env;
    let tasks = env.tasks()?;
    let Some((task, record)) = find(env, &call, &arguments.task).await? else {
        return Ok(no_such_task());
    };
    let tool = tool_of(&core, &call, &record.tool).await;
    if !answers_by(&core, tool.as_deref(), AnswerBy::Tool) {
        return Ok(only_by_people(task.as_str()));
    }
    let (key, response) = match response(&record, arguments) {
        Ok(response) => response,
        Err(reason) => return Ok(failed(reason)),
    };
    let principal = call.principal().key();
    let (action, max_bytes) = (response.action, tasks.allowance(principal).max_bytes);
    let response = to_raw_value(&response).map_err(ProtocolError::internal)?;
    let store = tasks.engine().store();
    let taken =
        store.respond(principal, &task, InputSource::Tool, vec![(key, response)], max_bytes).await;
    match taken.map_err(|error| tasks.refused(&call, &error))? {
        None => Ok(no_such_task()),
        Some(0) => Ok(only_by_people(task.as_str())),
        Some(_) => {
            tasks.note(&call, &task, "updated", Some("input response of a tool stored".to_owned()));
            let (tool, id) = (&record.tool, task.as_str());
            let what = match action {
                ElicitAction::Accept => "Accepted",
                ElicitAction::Decline => "Declined",
                _ => "Dismissed",
            };
            Ok(reply(format!(
                "{what}. `{tool}` continues; call {TASK_RESULT} with {{\"task\":\"{id}\"}}."
            )))
        }
    }
}

/// Returns the input request and the response of the user, or the reason why they do not fit.
fn response(record: &TaskRecord, arguments: Arguments) -> Result<(String, ElicitResult), String> {
    let OpenInput { name: key, request, .. } =
        match (&arguments.input_request, &*record.input_requests) {
            (_, []) => return Err("the task has no open input request".to_owned()),
            (None, [only]) => only,
            (None, several) => {
                let keys: Vec<_> =
                    several.iter().map(|input| format!("`{}`", input.name)).collect();
                return Err(format!(
                    "the task has several input requests: {}; pass one as `input_request`",
                    keys.join(", ")
                ));
            }
            (Some(key), open) => open
                .iter()
                .find(|open| open.name == *key)
                .ok_or_else(|| format!("the task has no open input request `{key}`"))?,
        };
    let content = match (arguments.action, request) {
        (ElicitAction::Accept, InputRequest::Elicit(ElicitRequestParams::Form(form))) => {
            let content = arguments.content.as_ref().map_or("{}", |content| content.get());
            forms::check(&form.requested_schema, content)
                .map_err(|reason| format!("the answer to `{key}` does not fit: {reason}"))?;
            arguments.content
        }
        (_, InputRequest::Elicit(_)) => None,
        _ => return Err(format!("`{key}` asks the client, not the user")),
    };
    Ok((key.clone(), ElicitResult { action: arguments.action, content, meta: None }))
}

/// Returns the response for an input request that no tool may answer.
fn only_by_people(task: &str) -> Outcome {
    failed(format!(
        "only the user can answer this input request: have them run `outlive tasks answer {task}`"
    ))
}

//! The task that a fallback tool names, and the replies of the tools.

use std::sync::Arc;

use outlive_protocol::{Call, MethodResult, Outcome, ProtocolError};
use outlive_tasks::store::{TaskId, TaskRecord};
use outlive_wire::{CallToolResult, ContentBlock};
use serde::de::DeserializeOwned;

use crate::server::{
    dispatch::core::ServerCore,
    env::{environment::Env, task_error::unavailable},
    exec::bridge::no_such_task,
    hosts::AnswerBy,
    random::is_task_id,
    register::registered_tool::RegisteredTool,
    tasks::lookup::slow_down,
};

/// Returns the record of a bridged task that a model names.
pub(crate) async fn find(
    env: &Env,
    call: &Call,
    named: &str,
) -> Result<Option<(TaskId, TaskRecord)>, ProtocolError> {
    let tasks = env.tasks()?;
    if !is_task_id(named) {
        env.counters.lookups_denied.add(1);
        return Ok(None);
    }
    let task = TaskId::new(named);
    slow_down(env, tasks, call, &task)?;
    let record = tasks.engine().store().get(call.principal().key(), &task).await;
    let record = record.map_err(|error| unavailable(&error))?;
    if record.is_none() {
        denied(env, call, &task);
    }
    Ok(record.map(|record| (task, record)))
}

/// Counts a read of an unknown task, and returns the response.
pub(crate) fn denied(env: &Env, call: &Call, task: &TaskId) -> Outcome {
    env.counters.lookups_denied.add(1);
    if let Some(tasks) = &env.tasks {
        tasks.count(call, task, "look-up-denied");
    }
    no_such_task()
}

/// Returns the tool of a task, if it still exists for the caller. An error of the catalog is
/// logged: the caller can read its task without it.
pub(crate) async fn tool_of(
    core: &ServerCore,
    call: &Arc<Call>,
    tool: &str,
) -> Option<Arc<RegisteredTool>> {
    core.find_tool(call, tool).await.unwrap_or_else(|error| {
        tracing::warn!(tool, %error, "the catalog cannot find the tool of a task");
        None
    })
}

/// Returns whether input requests of a tool can be answered in this way.
pub(crate) fn answers_by(core: &ServerCore, tool: Option<&RegisteredTool>, by: AnswerBy) -> bool {
    let hosts = core.env.hosts();
    hosts.zip(tool).is_some_and(|(hosts, tool)| {
        hosts.answers_of(tool.exec.policy.answers.as_deref()).contains(&by)
    })
}

/// Reads the arguments of a call. Returns invalid ones as a tool error, so that the model can
/// correct them.
pub(crate) fn read_arguments<T: DeserializeOwned>(
    call: &Call,
) -> Result<Result<T, Outcome>, ProtocolError> {
    let read = serde_json::from_str(call.arguments()?);
    Ok(read.map_err(|error| failed(format!("invalid arguments: {error}"))))
}

/// Returns a text as the result of a tool.
pub(crate) fn reply(text: String) -> Outcome {
    let content = vec![ContentBlock::text(text)];
    let result = CallToolResult { content, ..CallToolResult::default() };
    Outcome::Complete(MethodResult::Tool(result))
}

/// Returns a text as the error of a tool.
pub(crate) fn failed(text: String) -> Outcome {
    Outcome::Complete(MethodResult::Tool(CallToolResult::error(text)))
}

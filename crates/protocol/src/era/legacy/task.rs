//! Tasks in the format of 2025-11-25: `tasks/get` polls the status, and `tasks/result` waits for
//! the result.
//! Spec: <https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks>

use outlive_wire::Meta;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{ResponseModes, TaskCapability, TaskState, TaskView, task::rfc3339};

/// A task without its result, which the client requests separately.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task<'a> {
    task_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: String,
    last_updated_at: String,
    // `ttl` is always serialized: `null` means that the task never expires.
    ttl: Option<u64>,
    poll_interval: u64,
}

/// The result of a call that became a task.
#[derive(Serialize)]
pub(super) struct Created<'a> {
    task: Task<'a>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta>,
}

/// Key of the text for the model while the task runs.
const IMMEDIATE: &str = "io.modelcontextprotocol/model-immediate-response";

/// Key that reports that the server supports none of the requested response modes.
const FALLBACK: &str = "io.modelcontextprotocol/fallback-mode";

impl<'a> Created<'a> {
    pub(super) fn of(view: &'a TaskView) -> Self {
        Self { task: Task::of(view), meta: meta(view) }
    }
}

/// Returns the `_meta` of a new task.
pub(super) fn meta(view: &TaskView) -> Option<Meta> {
    let mut meta = Meta::default();
    if let Some(said) = &view.immediate {
        meta.insert(IMMEDIATE.to_owned(), said.as_str().into());
    }
    if view.fell_back {
        meta.insert(FALLBACK.to_owned(), ResponseModes::TASK.into());
    }
    (!meta.is_empty()).then_some(meta)
}

impl<'a> Task<'a> {
    pub(super) fn of(view: &'a TaskView) -> Self {
        Self {
            task_id: &view.id,
            status: status(&view.state),
            status_message: view.message.as_deref().or_else(|| why(&view.state)),
            created_at: rfc3339(view.created),
            last_updated_at: rfc3339(view.updated),
            ttl: view.ttl,
            poll_interval: view.poll.max(1),
        }
    }
}

fn status(state: &TaskState) -> &'static str {
    match state {
        TaskState::Working => "working",
        TaskState::InputRequired(_) => "input_required",
        // A tool error is `failed` in this era and `completed` in the modern era.
        TaskState::Result(result) if result.is_error == Some(true) => "failed",
        TaskState::Result(_) => "completed",
        TaskState::Error(_) | TaskState::Expired => "failed",
        TaskState::Cancelled => "cancelled",
    }
}

/// Returns the status message of a failed task whose handler set none.
fn why(state: &TaskState) -> Option<&str> {
    match state {
        TaskState::Result(result) if result.is_error == Some(true) => {
            Some("the tool reported an error")
        }
        TaskState::Error(error) => Some(&error.message),
        TaskState::Expired => Some("the task has expired"),
        _ => None,
    }
}

/// Returns the `tasks` capability of the handshake.
pub(super) fn capability(offers: TaskCapability) -> Value {
    let mut capability = json!({"cancel": {}, "requests": {"tools": {"call": {}}}});
    if offers.list {
        capability["list"] = json!({});
    }
    if let Some(modes) = offers.modes {
        let modes: Vec<&str> = modes.names().collect();
        capability["responses"] = json!({"modes": modes});
    }
    capability
}

/// Returns the value of the key that names the task of a message.
pub(super) fn related(id: &str) -> Value {
    json!({"taskId": id})
}

//! Tasks as the extension of 2026-07-28 has them: flat, with all that is known inline.
//! Spec: <https://github.com/modelcontextprotocol/ext-tasks>

use outlive_wire::{CallToolResult, ErrorObject, InputRequests, Meta};
use serde::Serialize;

use crate::{TaskState, TaskView, task::rfc3339};

/// A task, as all its messages begin.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task<'a> {
    task_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: String,
    last_updated_at: String,
    // There even if it is null: that says for ever.
    ttl_ms: Option<u64>,
    poll_interval_ms: u64,
    #[serde(flatten)]
    details: Details<'a>,
}

/// What each status has beside it.
#[derive(Serialize)]
#[serde(untagged)]
enum Details<'a> {
    None {},
    #[serde(rename_all = "camelCase")]
    Questions {
        input_requests: &'a InputRequests,
    },
    Result {
        result: Inlined<'a>,
    },
    Error {
        error: ErrorObject,
    },
}

/// The result, exactly as the call would have returned it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Inlined<'a> {
    result_type: &'static str,
    #[serde(flatten)]
    result: &'a CallToolResult,
}

impl<'a> Task<'a> {
    /// A task with all its details.
    pub(super) fn detailed(view: &'a TaskView) -> Self {
        let (status, details) = match &view.state {
            TaskState::Working => ("working", Details::None {}),
            TaskState::InputRequired(questions) => {
                ("input_required", Details::Questions { input_requests: questions })
            }
            // Also if the tool failed: that is a result.
            TaskState::Result(result) => {
                let result = Inlined { result_type: "complete", result };
                ("completed", Details::Result { result })
            }
            TaskState::Error(error) => ("failed", Details::Error { error: error.clone() }),
            TaskState::Cancelled => ("cancelled", Details::None {}),
            TaskState::Expired => ("failed", Details::Error { error: expired() }),
        };
        Self {
            task_id: &view.id,
            status,
            status_message: view.message.as_deref(),
            created_at: rfc3339(view.created),
            last_updated_at: rfc3339(view.updated),
            ttl_ms: view.ttl,
            poll_interval_ms: view.poll.max(1),
            details,
        }
    }

    /// A task that has just been made: what it has come to is read later.
    pub(super) fn created(view: &'a TaskView) -> Self {
        Self { details: Details::None {}, ..Self::detailed(view) }
    }
}

fn expired() -> ErrorObject {
    ErrorObject {
        code: outlive_wire::code::INTERNAL,
        message: "the task has expired".to_owned(),
        data: None,
    }
}

/// The parameters of `notifications/tasks`, for one subscription.
#[derive(Serialize)]
pub(super) struct Told<'a> {
    #[serde(flatten)]
    pub(super) task: Task<'a>,
    #[serde(rename = "_meta")]
    pub(super) meta: Meta,
}

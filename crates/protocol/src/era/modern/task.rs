//! Tasks in the format of the 2026-07-28 extension: one flat object with the result or error
//! inline.
//! Spec: <https://github.com/modelcontextprotocol/ext-tasks>

use outlive_wire::{CallToolResult, ErrorObject, InputRequests, Meta};
use serde::Serialize;

use crate::{TaskState, TaskView, task::rfc3339};

/// A task with the members that all messages about it share.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task<'a> {
    task_id: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_message: Option<&'a str>,
    created_at: String,
    last_updated_at: String,
    // `ttlMs` is always serialized: `null` means that the task never expires.
    ttl_ms: Option<u64>,
    poll_interval_ms: u64,
    #[serde(flatten)]
    details: Details<'a>,
}

/// The members that depend on the status.
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
    /// Returns a task with all details.
    pub(super) fn detailed(view: &'a TaskView) -> Self {
        let (status, details) = match &view.state {
            TaskState::Working => ("working", Details::None {}),
            TaskState::InputRequired(questions) => {
                ("input_required", Details::Questions { input_requests: questions })
            }
            // A tool error is a result too.
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

    /// Returns a new task, without details. The client reads the result later.
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
pub(super) struct TaskNotificationParams<'a> {
    #[serde(flatten)]
    pub(super) task: Task<'a>,
    #[serde(rename = "_meta")]
    pub(super) meta: Meta,
}

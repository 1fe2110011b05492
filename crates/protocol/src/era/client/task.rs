//! A task as a client sees it, independent of the protocol version.
//!
//! The parser is lenient: some servers use the member names of the other era, omit the poll
//! interval, or write `null` instead of omitting a member.

use outlive_wire::{ErrorObject, InputRequests, Meta, RawJson};
use serde::Deserialize;
use serde_json::Value;

use crate::Progress;

/// The state of a task at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// Task ID.
    pub id: String,
    /// Name of the tool, in a list of the extension `dev.outlive/task-list`.
    pub tool: Option<String>,
    /// Task status.
    pub status: TaskStatus,
    /// Status message.
    pub message: Option<String>,
    /// Progress, from servers with the extension `dev.outlive/task-partials`.
    pub progress: Option<Progress>,
    /// Creation time, as the server wrote it.
    pub created: Option<String>,
    /// Time of the last change, as the server wrote it.
    pub updated: Option<String>,
    /// TTL in milliseconds from the creation. `None` if the task never expires or the server sent
    /// no TTL.
    pub ttl: Option<u64>,
    /// Recommended poll interval in milliseconds.
    pub poll: Option<u64>,
    /// Open input requests.
    pub questions: Option<InputRequests>,
    /// Result of the call, if the message contains it.
    pub result: Option<RawJson>,
    /// Error of the call, if the message contains it.
    pub error: Option<ErrorObject>,
    /// Text for the model while the task runs (`model-immediate-response`).
    pub immediate: Option<String>,
    /// `_meta` of the message.
    pub meta: Option<Meta>,
}

/// Task status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskStatus {
    /// The task runs.
    Working,
    /// The task waits for input responses.
    InputRequired,
    /// The task ended with a result.
    Completed,
    /// The task ended with an error.
    Failed,
    /// The task was cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Returns whether the status never changes again.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// Returns the status as in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Written {
    task_id: String,
    tool: Option<String>,
    status: String,
    status_message: Option<String>,
    created_at: Option<String>,
    last_updated_at: Option<String>,
    #[serde(alias = "ttl")]
    ttl_ms: Option<f64>,
    #[serde(alias = "pollInterval")]
    poll_interval_ms: Option<f64>,
    input_requests: Option<InputRequests>,
    result: Option<RawJson>,
    error: Option<Loose>,
    #[serde(rename = "_meta")]
    meta: Option<Meta>,
}

/// Error of a task. Drafts of the specification allow any object here.
#[derive(Deserialize)]
struct Loose {
    code: Option<i32>,
    message: Option<String>,
    data: Option<RawJson>,
}

/// Parses a task: the result of `tasks/get`, in both eras.
///
/// # Errors
///
/// Returns why the text is not a valid task.
pub fn read_task(text: &str) -> Result<TaskSnapshot, String> {
    let written = serde_json::from_str(text).map_err(|error| format!("invalid task: {error}"))?;
    snapshot(written)
}

/// Parses the result of a legacy call. Returns `None` if the call did not become a task.
pub(in crate::era) fn read_nested(text: &str) -> Result<Option<TaskSnapshot>, String> {
    #[derive(Deserialize)]
    struct Created {
        task: Option<Written>,
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }
    let created: Created = match serde_json::from_str(text) {
        Ok(created) => created,
        Err(error) => return Err(format!("invalid task: {error}")),
    };
    let Some(task) = created.task else { return Ok(None) };
    let mut snapshot = snapshot(task)?;
    snapshot.immediate = created
        .meta
        .as_ref()
        .and_then(|meta| meta.get("io.modelcontextprotocol/model-immediate-response"))
        .and_then(Value::as_str)
        .map(str::to_owned);
    snapshot.meta = snapshot.meta.or(created.meta);
    Ok(Some(snapshot))
}

fn snapshot(written: Written) -> Result<TaskSnapshot, String> {
    let status = match written.status.as_str() {
        "working" => TaskStatus::Working,
        "input_required" => TaskStatus::InputRequired,
        "completed" => TaskStatus::Completed,
        "failed" => TaskStatus::Failed,
        "cancelled" => TaskStatus::Cancelled,
        other => return Err(format!("unknown task status `{}`", crate::error::short(other))),
    };
    let error = written.error.map(|error| ErrorObject {
        code: error.code.unwrap_or(outlive_wire::code::INTERNAL),
        message: error.message.unwrap_or_else(|| "the task failed".to_owned()),
        data: error.data,
    });
    Ok(TaskSnapshot {
        id: written.task_id,
        tool: written.tool,
        status,
        message: written.status_message,
        progress: written.meta.as_ref().and_then(progress),
        created: written.created_at,
        updated: written.last_updated_at,
        ttl: written.ttl_ms.map(millis),
        poll: written.poll_interval_ms.map(millis),
        questions: written.input_requests,
        // Servers write `null` for an absent result; no call returns `null`.
        result: written.result.filter(|result| result.get() != "null"),
        error,
        immediate: None,
        meta: written.meta,
    })
}

/// Returns the progress in `_meta`, from servers with the extension `dev.outlive/task-partials`.
fn progress(meta: &Meta) -> Option<Progress> {
    #[derive(Deserialize)]
    struct Far {
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    }
    let far = meta.get("dev.outlive/progress")?;
    let Far { progress, total, message } = Far::deserialize(far).ok()?;
    Some(Progress { done: progress, total, message })
}

/// Converts milliseconds: some servers write whole numbers with a fraction, and negative ones mean
/// zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturation of values out of range is intended"
)]
fn millis(number: f64) -> u64 {
    number.max(0.0) as u64
}

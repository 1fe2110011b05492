//! A task as a client sees it, whichever dialect told of it.
//!
//! Read with tolerance: peers have sent the names of one dialect in the other, left the poll
//! interval out, and written `null` where nothing should stand.

use outlive_wire::{ErrorObject, InputRequests, Meta, RawJson};
use serde::Deserialize;
use serde_json::Value;

use crate::Progress;

/// A task at one moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// Its name.
    pub id: String,
    /// Name of its tool, in a list of the extension `dev.outlive/task-list`.
    pub tool: Option<String>,
    /// How far it is.
    pub status: TaskStatus,
    /// What it is doing, in words.
    pub message: Option<String>,
    /// How far it is, from servers that have the extension `dev.outlive/task-partials`.
    pub progress: Option<Progress>,
    /// When it was made, as the server wrote it.
    pub created: Option<String>,
    /// When it last changed, as the server wrote it.
    pub updated: Option<String>,
    /// For how many milliseconds from its creation it exists; `None` for ever, or if nothing is said.
    pub ttl: Option<u64>,
    /// How many milliseconds to wait between two looks.
    pub poll: Option<u64>,
    /// What it wants to know.
    pub questions: Option<InputRequests>,
    /// What the call would have returned, where that comes with the task.
    pub result: Option<RawJson>,
    /// The refusal that the call would have met, where that comes with the task.
    pub error: Option<ErrorObject>,
    /// What the model may be told while it runs.
    pub immediate: Option<String>,
    /// Beside the subject.
    pub meta: Option<Meta>,
}

/// How far a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskStatus {
    /// At work.
    Working,
    /// Waits for answers.
    InputRequired,
    /// Over, with a result.
    Completed,
    /// Over, with an error.
    Failed,
    /// Cancelled.
    Cancelled,
}

impl TaskStatus {
    /// Whether it will never change again.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }

    /// The word on the wire.
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

/// An error as a task has it. Drafts let it be any object.
#[derive(Deserialize)]
struct Loose {
    code: Option<i32>,
    message: Option<String>,
    data: Option<RawJson>,
}

/// Reads the state of a task: the result of `tasks/get`, in both eras.
///
/// # Errors
///
/// In a few words, why it is none.
pub fn read_task(text: &str) -> Result<TaskSnapshot, String> {
    let written = serde_json::from_str(text).map_err(|error| format!("no task: {error}"))?;
    snapshot(written)
}

/// Reads the answer of a legacy call that became a task; `None` if it did not.
pub(in crate::era) fn read_nested(text: &str) -> Result<Option<TaskSnapshot>, String> {
    #[derive(Deserialize)]
    struct Created {
        task: Option<Written>,
        #[serde(rename = "_meta")]
        meta: Option<Meta>,
    }
    let created: Created = match serde_json::from_str(text) {
        Ok(created) => created,
        Err(error) => return Err(format!("no task: {error}")),
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
        other => return Err(format!("a task cannot be `{}`", crate::error::short(other))),
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
        // What is `null` is not there: no call returns that.
        result: written.result.filter(|result| result.get() != "null"),
        error,
        immediate: None,
        meta: written.meta,
    })
}

/// How far a task is, where that stands beside it.
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

/// Peers write whole numbers with fractions; a negative span is none.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float beyond the bounds saturates, which is what is wanted"
)]
fn millis(number: f64) -> u64 {
    number.max(0.0) as u64
}

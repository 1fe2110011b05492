//! The list of the extension `dev.outlive/task-list`: the tasks of one caller from all protocol
//! versions, without their results.

use outlive_wire::RawJson;
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::task::Task;
use crate::{TaskView, version::FIRST_MODERN};

/// Outlive's extension for listing a caller's tasks from all protocol versions.
pub const TASK_LIST: &str = "dev.outlive/task-list";

/// The method of [`TASK_LIST`]. Available in every protocol version.
pub const LIST_ALL_TASKS: &str = "dev.outlive/tasks/list";

/// A task in the list of [`TASK_LIST`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codec reads it")]
pub struct ListedTask {
    /// Name of the tool.
    pub tool: String,
    /// Origin of the task as in the store. Identifies its era.
    pub origin: String,
    /// The task.
    pub view: TaskView,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    tasks: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<&'a str>,
}

#[derive(Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    task: Task<'a>,
    tool: &'a str,
    era: &'static str,
}

/// Serializes a page of the list of [`TASK_LIST`]. The format is the same for every protocol
/// version.
///
/// # Errors
///
/// If serialization fails.
pub fn task_list(
    tasks: &[ListedTask],
    next_cursor: Option<&str>,
) -> Result<RawJson, serde_json::Error> {
    let tasks = tasks.iter().map(|ListedTask { tool, origin, view }| Entry {
        task: Task::created(view),
        tool,
        era: if origin == FIRST_MODERN.task_origin { "modern" } else { "legacy" },
    });
    to_raw_value(&Page { tasks: tasks.collect(), next_cursor })
}

//! The list of our extension `dev.outlive/task-list`: the tasks of one caller, of every protocol
//! version, without their results.

use outlive_wire::RawJson;
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::task::Task;
use crate::{TaskView, version::FIRST_MODERN};

/// Our own extension, by which callers list their tasks of every protocol version.
pub const TASK_LIST: &str = "dev.outlive/task-list";

/// The method of [`TASK_LIST`]. Every protocol version has it.
pub const LIST_ALL_TASKS: &str = "dev.outlive/tasks/list";

/// A task in the list of [`TASK_LIST`].
#[derive(Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codec reads it")]
pub struct ListedTask {
    /// Name of its tool.
    pub tool: String,
    /// Label of its era, as the store keeps it.
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

/// Writes a page of the list of [`TASK_LIST`]: the same for callers of every protocol version.
///
/// # Errors
///
/// If the page cannot be written as JSON.
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

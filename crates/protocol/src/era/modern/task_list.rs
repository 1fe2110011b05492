//! The list of our extension `dev.outlive/task-list`: the tasks of one caller, of every protocol
//! version, without their results.

use outlive_wire::RawJson;
use serde::Serialize;
use serde_json::value::to_raw_value;

use super::{DIALECT, task::Task};
use crate::era::ListedTask;

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

/// Writes a page of the list.
pub(in crate::era) fn task_list(
    tasks: &[ListedTask],
    next_cursor: Option<&str>,
) -> Result<RawJson, serde_json::Error> {
    let tasks = tasks.iter().map(|ListedTask { tool, dialect, view }| Entry {
        task: Task::created(view),
        tool,
        era: if dialect == DIALECT { "modern" } else { "legacy" },
    });
    to_raw_value(&Page { tasks: tasks.collect(), next_cursor })
}

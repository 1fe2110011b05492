//! The tasks of the caller, as its server lists them.

use std::collections::HashSet;

use outlive_protocol::era::{self, client::TaskSnapshot};
use outlive_wire::{Method, RawJson};
use serde::Deserialize;
use serde_json::json;

use crate::client::{
    attempt::read,
    core::Client,
    error::{ClientError, Result},
};

/// The tasks that a server lists for its caller.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskList {
    /// The tasks, oldest first. A list has no results and no input requests.
    pub tasks: Vec<TaskSnapshot>,
    /// Whether the list has the tasks of every protocol version, which the extension
    /// `dev.outlive/task-list` promises. Otherwise it has those of the version in use.
    pub is_complete: bool,
}

impl Client {
    /// Lists the tasks of this caller: with the extension `dev.outlive/task-list` where the server
    /// declares it, else with `tasks/list`, which 2025-11-25 has and 2026-07-28 has not.
    ///
    /// # Errors
    ///
    /// [`ServerErrorKind::MethodNotFound`](crate::client::ServerErrorKind::MethodNotFound) when the server has no such list,
    /// or none for this caller; and as any call.
    pub async fn list_tasks(&self) -> Result<TaskList> {
        let offered = self.server_info().await?.capabilities.extensions;
        let is_complete = offered.is_some_and(|offered| offered.contains_key(era::TASK_LIST));
        let method = match is_complete {
            true => era::LIST_ALL_TASKS,
            false => Method::TasksList.as_str(),
        };
        Ok(TaskList { tasks: self.task_pages(method).await?, is_complete })
    }

    async fn task_pages(&self, method: &str) -> Result<Vec<TaskSnapshot>> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Page {
            tasks: Vec<RawJson>,
            next_cursor: Option<String>,
        }
        let (limits, mut seen) = (self.core.limits(), HashSet::new());
        let (mut tasks, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..limits.max_pages {
            let params = match &cursor {
                Some(cursor) => json!({"cursor": cursor}),
                None => json!({}),
            };
            let page: Page = read(self.request(method, params).await?.get())?;
            tasks.extend(page.tasks.iter().filter_map(entry));
            if tasks.len() > limits.max_entries {
                return Err(ClientError::TooManyPages(limits.max_entries).into());
            }
            match page.next_cursor {
                None => return Ok(tasks),
                Some(next) if !seen.insert(next.clone()) => {
                    return Err(ClientError::CursorLoop.into());
                }
                next => cursor = next,
            }
        }
        Err(ClientError::TooManyPages(limits.max_pages).into())
    }
}

/// Reads an entry. One that cannot be read is left out: it must not hide the others.
fn entry(raw: &RawJson) -> Option<TaskSnapshot> {
    match era::client::read_task(raw.get()) {
        Ok(task) => Some(task),
        Err(error) => {
            tracing::warn!(error, "a task that cannot be read was left out of a list");
            None
        }
    }
}

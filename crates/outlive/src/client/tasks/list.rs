//! List of the caller's tasks.

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

/// Tasks that a server lists for the caller.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskList {
    /// Tasks, oldest first. They contain no results and no input requests.
    pub tasks: Vec<TaskSnapshot>,
    /// Whether the list contains the tasks of all protocol versions (extension
    /// `dev.outlive/task-list`). Otherwise it contains those of the negotiated version.
    pub is_complete: bool,
}

impl Client {
    /// Lists the tasks of the caller. Uses the extension `dev.outlive/task-list` if the server
    /// declares it, and otherwise `tasks/list`, which only 2025-11-25 has.
    ///
    /// # Errors
    ///
    /// [`ServerErrorKind::MethodNotFound`](crate::client::ServerErrorKind::MethodNotFound) if the
    /// server does not list tasks for this caller, and the errors of any call.
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

/// Parses an entry. Omits an invalid one, because it must not hide the others.
fn entry(raw: &RawJson) -> Option<TaskSnapshot> {
    match era::client::read_task(raw.get()) {
        Ok(task) => Some(task),
        Err(error) => {
            tracing::warn!(error, "omitted an invalid task from a list");
            None
        }
    }
}

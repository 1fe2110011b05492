//! The tasks in the store, as an operator sees them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use outlive::operator::Operator;
use outlive::store::{TaskFilter, TaskId};
use tokio::runtime::Runtime;

/// Number of newest tasks that are read. More tasks than this are never in flight.
const NEWEST: usize = 500;

/// Reads the keys of committed tasks, beside the server or without it.
pub(super) struct Commits {
    runtime: Runtime,
    operator: Operator,
    /// The keys of the tasks that were read.
    known: Mutex<HashMap<TaskId, String>>,
}

impl Commits {
    pub(super) fn open(store: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .context("could not start a runtime")?;
        let operator =
            runtime.block_on(Operator::open(store)).context("could not open the store")?;
        Ok(Self { runtime, operator, known: Mutex::default() })
    }

    /// Returns the number of tasks so far, by key.
    pub(super) fn count(&self) -> Result<HashMap<String, usize>> {
        let filter = TaskFilter::default();
        let newest = self.runtime.block_on(self.operator.list(&filter, None, NEWEST))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for task in newest {
            let id = task.view.id;
            if known.contains_key(&id) {
                continue;
            }
            let detail = self.runtime.block_on(self.operator.store().inspect(&id))?;
            if let Some(key) = detail.and_then(|detail| key(detail.request.get())) {
                known.insert(id, key);
            }
        }
        let mut counts = HashMap::new();
        for key in known.values() {
            *counts.entry(key.clone()).or_insert(0) += 1;
        }
        Ok(counts)
    }
}

/// Finds the argument `key` in a stored call.
fn key(request: &str) -> Option<String> {
    let (_, rest) = request.split_once(r#""key":""#)?;
    rest.split('"').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::key;

    #[test]
    fn key_of_stored_call_is_found() {
        let request = r#"{"name":"render","arguments":{"key":"run-7","step":0.1}}"#;
        assert_eq!(key(request).as_deref(), Some("run-7"));
        assert_eq!(key("{}"), None);
    }
}

//! The overview of a system: counts, workers and failing deliveries.

use outlive_tasks::store::{Delivery, MetricRow, StoreStats, UnixMillis};
use serde::Deserialize;

use super::{
    error::PeopleError,
    roles::Visitor,
    state::{MAX_PAGE, People},
};

/// Prefix of the key-value entries of workers.
const WORKERS: &str = "worker/";

/// Maximum number of workers in a list.
const MAX_WORKERS: usize = 1_000;

/// A process that executes tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// ID of the worker.
    pub id: String,
    /// Name of its machine.
    pub host: String,
    /// Process ID.
    pub pid: u32,
    /// Version of its program.
    pub version: String,
    /// When its process started.
    pub started_at: UnixMillis,
    /// Time of the last heartbeat.
    pub heartbeat_at: UnixMillis,
}

impl WorkerInfo {
    /// Creates a worker that has not reported its machine.
    pub fn new(id: impl Into<String>) -> Self {
        let (host, version) = (String::new(), String::new());
        Self { id: id.into(), host, pid: 0, version, started_at: 0, heartbeat_at: 0 }
    }
}

/// Value of a worker's key-value entry.
#[derive(Default, Deserialize)]
#[serde(default)]
struct WorkerEntry {
    host: String,
    pid: u32,
    version: String,
    started_at: UnixMillis,
    heartbeat_at: UnixMillis,
}

impl People {
    /// Returns the counts of ended tasks since a time, by minute or hour and tool, oldest first. For
    /// viewers and operators.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](PeopleError::Forbidden) for other roles.
    pub async fn metrics(
        &self,
        visitor: &Visitor,
        since: UnixMillis,
    ) -> Result<Vec<MetricRow>, PeopleError> {
        visitor.require_viewer()?;
        Ok(self.store().metrics(since).await?)
    }

    /// Returns the number of tasks by phase, and how long the oldest due task has been due. For
    /// viewers and operators.
    ///
    /// # Errors
    ///
    /// Same as [`metrics`](Self::metrics).
    pub async fn stats(&self, visitor: &Visitor) -> Result<StoreStats, PeopleError> {
        visitor.require_viewer()?;
        Ok(self.store().stats().await?)
    }

    /// Returns the workers that use the store, by ID. For viewers and operators.
    ///
    /// # Errors
    ///
    /// Same as [`metrics`](Self::metrics).
    pub async fn workers(&self, visitor: &Visitor) -> Result<Vec<WorkerInfo>, PeopleError> {
        visitor.require_viewer()?;
        let entries = self.store().key_values(WORKERS, MAX_WORKERS).await?;
        let workers = entries.into_iter().map(|(key, value)| {
            let id = key.strip_prefix(WORKERS).unwrap_or(&key).to_owned();
            let WorkerEntry { host, pid, version, started_at, heartbeat_at } =
                serde_json::from_str(value.get()).unwrap_or_default();
            WorkerInfo { id, host, pid, version, started_at, heartbeat_at }
        });
        Ok(workers.collect())
    }

    /// Returns deliveries with a failed attempt, newest event first. For viewers and operators.
    ///
    /// # Errors
    ///
    /// Same as [`metrics`](Self::metrics).
    pub async fn deliveries(&self, visitor: &Visitor) -> Result<Vec<Delivery>, PeopleError> {
        visitor.require_viewer()?;
        Ok(self.store().failing(MAX_PAGE).await?)
    }

    /// Makes a delivery due now, with all attempts. For operators.
    ///
    /// # Errors
    ///
    /// [`Forbidden`](PeopleError::Forbidden) for other roles, [`NotFound`](PeopleError::NotFound)
    /// for an unknown delivery.
    pub async fn send_again(&self, visitor: &Visitor, delivery: &str) -> Result<(), PeopleError> {
        visitor.require_operator()?;
        match self.store().send_again(delivery).await? {
            true => Ok(()),
            false => Err(PeopleError::NotFound),
        }
    }
}

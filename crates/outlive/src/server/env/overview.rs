//! Data for the overview of a console: counts of ended tasks, and this process as a worker.
//!
//! The auditor reports each action on a task. The tool and the times of most tasks are known here,
//! because they start and end in one process; the store has those of the others. Every ten seconds a
//! background task adds the counts to the store. Without a console, nothing of this runs.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive_protocol::Clock;
use outlive_tasks::store::{MetricRow, NewTask, PeopleStore, StoreError, TaskId, WorkerId};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::task::AbortHandle;

use crate::server::{
    audit_name::name_in_audit,
    env::task_times::{Action, EndedTask, TaskTimes},
    time::wall_millis,
};

/// Interval between two writes of counts.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);

/// Number of writes between two heartbeats of the worker.
const HEARTBEAT_EVERY: u32 = 3;

/// Time for which the entry of a worker stays after its last heartbeat, for timelines.
const WORKER_TTL: Duration = Duration::from_secs(604_800);

/// Audit events that are read to find the first start of a task.
const FIRST_EVENTS: usize = 8;

/// Counts ended tasks, and writes the counts in the background. Dropping it stops the writer.
pub(crate) struct Overview {
    counts: Arc<Counts>,
    work: AbortHandle,
}

struct Counts {
    store: Arc<dyn PeopleStore>,
    worker: Worker,
    clock: Arc<dyn Clock>,
    // A std mutex: nothing awaits while it is held.
    times: Mutex<TaskTimes>,
}

/// This process, as other replicas and consoles see it.
struct Worker {
    id: WorkerId,
    host: String,
    started_at: u64,
}

/// Value of the key-value entry `worker/ID`.
#[derive(Serialize)]
struct WorkerEntry<'a> {
    host: &'a str,
    pid: u32,
    version: &'a str,
    started_at: u64,
    heartbeat_at: u64,
}

impl Overview {
    /// Starts the writer. Must be called inside a Tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn PeopleStore>,
        worker: WorkerId,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let worker = Worker { id: worker, host: host_name(), started_at: wall_millis(&*clock) };
        let counts = Arc::new(Counts { store, worker, clock, times: Mutex::default() });
        let writing = Arc::clone(&counts);
        let work = tokio::spawn(async move {
            for write in 0_u32.. {
                if write.is_multiple_of(HEARTBEAT_EVERY) {
                    writing.heartbeat().await;
                }
                tokio::time::sleep(WRITE_INTERVAL).await;
                writing.write().await;
            }
        });
        Self { counts, work: work.abort_handle() }
    }

    /// Records the tool of a task that is about to be created.
    pub(crate) fn creating(&self, task: &NewTask) {
        self.counts.lock().creating(task, self.counts.now());
    }

    /// Forgets a task that was not created.
    pub(crate) fn not_created(&self, task: &TaskId) {
        self.counts.lock().forget(task);
    }

    /// Takes note of an action that the audit log records.
    pub(crate) fn note(&self, principal: &str, task: &TaskId, name: &str, reason: Option<&str>) {
        let action = Action { name, has_reason: reason.is_some() };
        self.counts.lock().note(principal, task, action, self.counts.now());
    }

    /// Writes the counts before the process ends.
    pub(crate) async fn flush(&self) {
        self.counts.write().await;
    }
}

impl Drop for Overview {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Counts {
    /// Adds the counts since the last write to the store. Counts that cannot be written are lost:
    /// they are for display.
    async fn write(&self) {
        let (mut rows, unknown, omitted) = self.lock().take();
        if omitted > 0 {
            tracing::warn!(omitted, "too many tasks ended at once; the overview omits some");
        }
        for mut task in unknown {
            match self.complete(&mut task).await {
                Ok(()) => task.count(&mut rows),
                Err(error) => tracing::debug!(%error, "an ended task cannot be read for metrics"),
            }
        }
        if rows.is_empty() {
            return;
        }
        let worker = Some(self.worker.id.clone());
        let rows: Vec<MetricRow> =
            rows.into_values().map(|row| row.worker(worker.clone())).collect();
        if let Err(error) = self.store.add_metrics(&rows).await {
            tracing::warn!(%error, "metrics of ended tasks cannot be written to the store");
        }
    }

    /// Reads the tool and the times of a task that started in another process, or was parked.
    async fn complete(&self, task: &mut EndedTask) -> Result<(), StoreError> {
        let Some(record) = self.store.get(&task.principal, &task.id).await? else { return Ok(()) };
        task.times.tool = Some(record.tool);
        task.times.created_at = Some(record.created_at);
        if task.times.started_at.is_none() {
            let name = name_in_audit(&task.principal, task.id.as_str());
            let events = self.store.read(Some(&name), 0, FIRST_EVENTS).await?;
            let first = |action: &str| events.iter().find(|record| record.event.action == action);
            // A promoted call runs when its task is created; only this event then has a reason.
            let promoted = || first("created").filter(|record| record.event.reason.is_some());
            task.times.started_at = first("started").or_else(promoted).map(|record| record.at);
        }
        Ok(())
    }

    /// Writes the key-value entry of this worker.
    async fn heartbeat(&self) {
        let Worker { id, host, started_at } = &self.worker;
        let entry = WorkerEntry {
            host,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            started_at: *started_at,
            heartbeat_at: self.now(),
        };
        let Ok(entry) = to_raw_value(&entry) else { return };
        let key = format!("worker/{}", id.as_str());
        if let Err(error) = self.store.put(&key, entry, WORKER_TTL, None).await {
            tracing::warn!(%error, "the entry of this worker cannot be written to the store");
        }
    }

    fn now(&self) -> u64 {
        wall_millis(&*self.clock)
    }

    fn lock(&self) -> MutexGuard<'_, TaskTimes> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name of this machine, or `unknown`.
fn host_name() -> String {
    const MAX: usize = 64;
    let file = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let variables = ["HOSTNAME", "COMPUTERNAME"].iter().filter_map(|name| std::env::var(name).ok());
    let mut names = file.into_iter().chain(variables).map(|name| name.trim().to_owned());
    let name = names.find(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned());
    name.chars().take(MAX).collect()
}

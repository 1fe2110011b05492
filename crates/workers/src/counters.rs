//! Numbers of one tool worker.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

/// Counters of one tool worker since the server has started.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) losses: AtomicU64,
    pub(crate) starts: AtomicU64,
}

/// Numbers of one tool worker.

#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerMetrics {
    /// Name of the tool worker.
    pub tool_worker: String,
    /// Processes that accept calls.
    pub processes: usize,
    /// Calls and cleanups in processes.
    pub running: usize,
    /// Calls and tasks that wait for a place.
    pub waiting: usize,
    /// Calls that were sent to a process, repeated ones included.
    pub calls: u64,
    /// Calls that lost their process.
    pub losses: u64,
    /// Started processes.
    pub starts: u64,
}

/// Names, types and descriptions of the metrics.
const METRICS: [(&str, &str, &str); 6] = [
    ("outlive_tool_worker_processes", "gauge", "Processes of a tool worker that accept calls."),
    (
        "outlive_tool_worker_running",
        "gauge",
        "Calls and cleanups in the processes of a tool worker.",
    ),
    ("outlive_tool_worker_waiting", "gauge", "Calls and tasks that wait for a place in a process."),
    ("outlive_tool_worker_calls_total", "counter", "Calls that were sent to a process."),
    ("outlive_tool_worker_losses_total", "counter", "Calls that lost their process."),
    ("outlive_tool_worker_starts_total", "counter", "Started processes."),
];

impl Counters {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl WorkerMetrics {
    fn values(&self) -> [u64; 6] {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        [
            count(self.processes),
            count(self.running),
            count(self.waiting),
            self.calls,
            self.losses,
            self.starts,
        ]
    }

    /// Writes the numbers of several tool workers in the Prometheus text format.
    ///
    /// # Errors
    ///
    /// Returns the error of `out`.
    pub fn write_all(workers: &[Self], out: &mut impl fmt::Write) -> fmt::Result {
        if workers.is_empty() {
            return Ok(());
        }
        for (at, (name, kind, help)) in METRICS.into_iter().enumerate() {
            writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")?;
            for worker in workers {
                let label = worker.tool_worker.replace('\\', r"\\").replace('"', "\\\"");
                writeln!(out, "{name}{{tool_worker=\"{label}\"}} {}", worker.values()[at])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::WorkerMetrics;

    #[test]
    fn metrics_have_name_of_tool_worker() {
        let shop = WorkerMetrics {
            tool_worker: "shop".to_owned(),
            processes: 1,
            running: 2,
            waiting: 3,
            calls: 4,
            losses: 5,
            starts: 6,
        };
        let mut text = String::new();
        WorkerMetrics::write_all(&[shop], &mut text).unwrap();
        assert!(
            text.contains("outlive_tool_worker_losses_total{tool_worker=\"shop\"} 5\n"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 18);
    }
}

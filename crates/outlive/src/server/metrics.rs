//! Metrics of a server.

use std::fmt;

use outlive_tasks::store::{OutcomeKind, StoreStats, TaskOutcome};

pub use super::{histogram::Histogram, meter::ToolMetrics};
use super::{
    histogram::{Count, HistogramCell, head, histogram},
    meter,
};

/// Counters that the server updates while it runs. Reading them takes no lock.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) created: Count,
    pub(crate) claimed: Count,
    pub(crate) completed: Count,
    pub(crate) failed: Count,
    pub(crate) cancelled: Count,
    pub(crate) expired: Count,
    pub(crate) purged: Count,
    pub(crate) leases_lost: Count,
    pub(crate) lookups_denied: Count,
    pub(crate) polls_rate_limited: Count,
    pub(crate) sessions_opened: Count,
    pub(crate) sessions_closed: Count,
    pub(crate) commits: HistogramCell,
}

impl Counters {
    pub(crate) fn ended(&self, outcome: &TaskOutcome) {
        match outcome.kind() {
            OutcomeKind::Completed => self.completed.add(1),
            OutcomeKind::Failed => self.failed.add(1),
            OutcomeKind::Cancelled => self.cancelled.add(1),
            OutcomeKind::Expired => self.expired.add(1),
        }
    }

    pub(crate) fn read(
        &self,
        tasks: Option<StoreStats>,
        streams: u64,
        tools: Vec<ToolMetrics>,
    ) -> Metrics {
        Metrics {
            tasks,
            tools,
            created: self.created.get(),
            claimed: self.claimed.get(),
            completed: self.completed.get(),
            failed: self.failed.get(),
            cancelled: self.cancelled.get(),
            expired: self.expired.get(),
            purged: self.purged.get(),
            leases_lost: self.leases_lost.get(),
            lookups_denied: self.lookups_denied.get(),
            polls_rate_limited: self.polls_rate_limited.get(),
            sessions: self.sessions_opened.get().saturating_sub(self.sessions_closed.get()),
            streams,
            commit_latency: self.commits.read(),
        }
    }
}

/// Metrics of a server since its start, and the current state of its store.
///
/// The [`Display`](fmt::Display) output is the Prometheus text format. The fields serve other
/// monitoring systems.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// Tasks in the store, of all replicas. `None` if the server has no store or the store is
    /// unavailable.
    pub tasks: Option<StoreStats>,
    /// Call metrics of each registered tool.
    pub tools: Vec<ToolMetrics>,
    /// Tasks that this process created.
    pub created: u64,
    /// Tasks that this process claimed, first claims and reclaims.
    pub claimed: u64,
    /// Tasks that completed with a result that is not a tool error.
    pub completed: u64,
    /// Tasks that ended with a protocol error or a tool error.
    pub failed: u64,
    /// Tasks that clients or operators cancelled.
    pub cancelled: u64,
    /// Tasks whose TTL expired.
    pub expired: u64,
    /// Ended tasks that were deleted after their retention.
    pub purged: u64,
    /// Leases that this process lost, because another worker claimed the task or the store was
    /// unavailable.
    pub leases_lost: u64,
    /// Lookups of tasks that do not exist or belong to another principal.
    pub lookups_denied: u64,
    /// Polls that were rejected by the poll rate limit.
    pub polls_rate_limited: u64,
    /// Open legacy sessions in this process.
    pub sessions: u64,
    /// Open streams in this process.
    pub streams: u64,
    /// Latency of store commits of running tasks.
    pub commit_latency: Histogram,
}

impl fmt::Display for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(tasks) = &self.tasks {
            let help = "Tasks in the store, by phase.";
            head(f, "outlive_tasks", "gauge", help)?;
            for (phase, count) in [
                ("queued", tasks.queued),
                ("running", tasks.running),
                ("parked", tasks.parked),
                ("quarantined", tasks.quarantined),
                ("ended", tasks.ended),
            ] {
                writeln!(f, "outlive_tasks{{phase=\"{phase}\"}} {count}")?;
            }
            let help = "Age of the oldest due task.";
            let waiting = tasks.oldest_due.unwrap_or_default().as_secs_f64();
            head(f, "outlive_queue_age_seconds", "gauge", help)?;
            writeln!(f, "outlive_queue_age_seconds {waiting}")?;
        }
        head(
            f,
            "outlive_tasks_ended_total",
            "counter",
            "Tasks that ended in this process, by outcome.",
        )?;
        for (how, count) in [
            ("completed", self.completed),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
            ("expired", self.expired),
        ] {
            writeln!(f, "outlive_tasks_ended_total{{outcome=\"{how}\"}} {count}")?;
        }
        for (name, kind, help, value) in [
            ("tasks_created_total", "counter", "Tasks created by this process.", self.created),
            ("tasks_claimed_total", "counter", "Tasks claimed by this process.", self.claimed),
            ("tasks_purged_total", "counter", "Tasks deleted after retention.", self.purged),
            ("leases_lost_total", "counter", "Leases lost by this process.", self.leases_lost),
            (
                "task_lookups_denied_total",
                "counter",
                "Lookups of tasks that do not exist or belong to another principal.",
                self.lookups_denied,
            ),
            (
                "polls_rate_limited_total",
                "counter",
                "Polls rejected by the rate limit.",
                self.polls_rate_limited,
            ),
            ("sessions", "gauge", "Open legacy sessions.", self.sessions),
            ("open_streams", "gauge", "Open streams.", self.streams),
        ] {
            let name = format!("outlive_{name}");
            head(f, &name, kind, help)?;
            writeln!(f, "{name} {value}")?;
        }
        let (name, help) = ("outlive_store_commit_seconds", "Latency of store commits.");
        head(f, name, "histogram", help)?;
        histogram(f, name, "", &self.commit_latency)?;
        meter::write(f, &self.tools)
    }
}

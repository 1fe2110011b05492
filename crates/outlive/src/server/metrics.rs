//! What a server has done and is doing, in numbers.

use std::fmt;

use outlive_tasks::store::{OutcomeKind, StoreStats, TaskOutcome};

pub use super::{histogram::Histogram, meter::ToolMetrics};
use super::{
    histogram::{Count, HistogramCell, head, histogram},
    meter,
};

/// Counts while the server runs. Reading it stops nobody.
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

/// What a server has done since it was started, and how its store looks now.
///
/// Its [`Display`](fmt::Display) is the text format of Prometheus; the fields are there for every
/// other system.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Metrics {
    /// The tasks in the store, of all replicas; `None` if it could not be asked, or there is none.
    pub tasks: Option<StoreStats>,
    /// The calls of each tool that is registered now.
    pub tools: Vec<ToolMetrics>,
    /// Tasks that this process has made.
    pub created: u64,
    /// Tasks that it has begun, or begun again.
    pub claimed: u64,
    /// Tasks that ended with a result that is not an error.
    pub completed: u64,
    /// Tasks that ended with an error, or with a result that is one.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Tasks whose time was over.
    pub expired: u64,
    /// Tasks that have been forgotten.
    pub purged: u64,
    /// Tasks that this process had to give up because others had claimed them, or the store was
    /// not there.
    pub leases_lost: u64,
    /// Questions for tasks that are not there, or not the caller's.
    pub lookups_denied: u64,
    /// Polls that came too fast.
    pub polls_rate_limited: u64,
    /// Sessions of older revisions that are open here.
    pub sessions: u64,
    /// Streams that are open here.
    pub streams: u64,
    /// How long the store took to write what running tasks recorded.
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
            let help = "How long the task that is due for the longest time has waited.";
            let waiting = tasks.oldest_due.unwrap_or_default().as_secs_f64();
            head(f, "outlive_queue_age_seconds", "gauge", help)?;
            writeln!(f, "outlive_queue_age_seconds {waiting}")?;
        }
        head(f, "outlive_tasks_ended_total", "counter", "Tasks that ended here, by how.")?;
        for (how, count) in [
            ("completed", self.completed),
            ("failed", self.failed),
            ("cancelled", self.cancelled),
            ("expired", self.expired),
        ] {
            writeln!(f, "outlive_tasks_ended_total{{outcome=\"{how}\"}} {count}")?;
        }
        for (name, kind, help, value) in [
            ("tasks_created_total", "counter", "Tasks made here.", self.created),
            ("tasks_claimed_total", "counter", "Tasks begun here, or begun again.", self.claimed),
            ("tasks_purged_total", "counter", "Tasks forgotten.", self.purged),
            ("leases_lost_total", "counter", "Tasks given up to others.", self.leases_lost),
            (
                "task_lookups_denied_total",
                "counter",
                "Look-ups of tasks that are not there, or not the caller's.",
                self.lookups_denied,
            ),
            (
                "polls_rate_limited_total",
                "counter",
                "Polls that came too fast.",
                self.polls_rate_limited,
            ),
            ("sessions", "gauge", "Sessions of older revisions.", self.sessions),
            ("open_streams", "gauge", "Open streams.", self.streams),
        ] {
            let name = format!("outlive_{name}");
            head(f, &name, kind, help)?;
            writeln!(f, "{name} {value}")?;
        }
        let (name, help) = ("outlive_store_commit_seconds", "How long the store took to write.");
        head(f, name, "histogram", help)?;
        histogram(f, name, "", &self.commit_latency)?;
        meter::write(f, &self.tools)
    }
}

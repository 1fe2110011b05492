//! The timeline of a task: workers, steps, input requests and timers on one axis.

use outlive_tasks::{
    JournalEntry,
    store::{
        AuditRecord, EntryKind, InputRequestRecord, TaskDetail, TaskId, TimelineEntry, UnixMillis,
    },
};

use super::{error::PeopleError, roles::Visitor, state::People};

/// Maximum number of journal entries in a timeline.
const MAX_ENTRIES: usize = 20_000;

/// Lanes of a task's timeline.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Timeline {
    /// When the task was created.
    pub created_at: UnixMillis,
    /// When the task ended.
    pub ended_at: Option<UnixMillis>,
    /// Steps and other journal entries, in the order of their commits; empty if the visitor may
    /// not see the journal.
    pub entries: Vec<TimelineEntry>,
    /// Workers that ran the task, in order. Best effort: taken from the audit log.
    pub workers: Vec<WorkerSpan>,
    /// Input requests, in the order of their issue.
    pub inputs: Vec<InputRequestRecord>,
    /// Timers, in the order of their start.
    pub timers: Vec<TimerSpan>,
}

/// Time in which a worker ran a task.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerSpan {
    /// ID of the worker.
    pub worker: String,
    /// When the worker started or resumed the task.
    pub from: UnixMillis,
    /// When the worker stopped; `None` if it still runs the task.
    pub until: Option<UnixMillis>,
    /// Whether the worker lost its lease or crashed.
    pub lost: bool,
}

/// Time in which a task waited for a timer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TimerSpan {
    /// Journal key of the timer.
    pub key: String,
    /// When the timer was started.
    pub from: UnixMillis,
    /// When the timer ends.
    pub until: UnixMillis,
}

impl WorkerSpan {
    /// Creates the span of a worker that still runs the task.
    pub fn new(worker: impl Into<String>, from: UnixMillis) -> Self {
        Self { worker: worker.into(), from, until: None, lost: false }
    }
}

impl TimerSpan {
    /// Creates the span of a timer.
    pub fn new(key: impl Into<String>, from: UnixMillis, until: UnixMillis) -> Self {
        Self { key: key.into(), from, until }
    }
}

impl People {
    /// Returns the timeline of a task.
    ///
    /// # Errors
    ///
    /// [`NotFound`](PeopleError::NotFound) if the visitor has no such task,
    /// [`Forbidden`](PeopleError::Forbidden) for an MCP token.
    pub async fn timeline(&self, visitor: &Visitor, id: &TaskId) -> Result<Timeline, PeopleError> {
        let task = self.find_task(visitor, id).await?;
        visitor.require_person()?;
        let detail = self.store().inspect(id).await?.ok_or(PeopleError::NotFound)?;
        let entries = self.store().timeline(id, MAX_ENTRIES).await?;
        let events = self.events_of(&task).await?;
        let mut timeline = Timeline {
            created_at: task.summary.view.created_at,
            ended_at: detail.task.view.outcome.is_some().then_some(detail.task.view.updated_at),
            workers: workers(&events),
            timers: timers(&detail, &entries),
            entries,
            inputs: detail.input_requests,
        };
        if !visitor.sees_contents(&task) {
            timeline.entries.clear();
            timeline.timers.iter_mut().for_each(|timer| timer.key.clear());
            timeline.inputs.iter_mut().for_each(|asked| asked.request = None);
        }
        Ok(timeline)
    }
}

/// Returns the spans of workers, from the events that their engines wrote.
fn workers(events: &[AuditRecord]) -> Vec<WorkerSpan> {
    let mut spans: Vec<WorkerSpan> = Vec::new();
    for AuditRecord { at, event, .. } in events {
        // A promoted call runs when its task is created; only that event then has a reason.
        let starts = matches!(event.action.as_str(), "started" | "resumed")
            || event.action == "created" && event.reason.is_some();
        let is_lost = event.action == "lease-lost";
        let ends = is_lost
            || matches!(
                event.action.as_str(),
                "parked"
                    | "released"
                    | "quarantined"
                    | "ended"
                    | "completed"
                    | "failed"
                    | "cancelled"
                    | "expired"
            );
        let open = spans.last_mut().filter(|span| span.until.is_none());
        match (&event.worker, open) {
            (Some(worker), Some(span)) if starts && span.worker != *worker => {
                // The worker stopped without an event: its process crashed.
                (span.until, span.lost) = (Some(*at), true);
                spans.push(WorkerSpan::new(worker.clone(), *at));
            }
            (Some(worker), None) if starts => spans.push(WorkerSpan::new(worker.clone(), *at)),
            (worker, Some(span)) if ends && worker.as_ref().is_none_or(|it| *it == span.worker) => {
                (span.until, span.lost) = (Some(*at), is_lost);
            }
            _ => {}
        }
    }
    spans
}

/// Returns the timers of a task.
fn timers(detail: &TaskDetail, entries: &[TimelineEntry]) -> Vec<TimerSpan> {
    let timers = entries.iter().filter(|entry| entry.kind == EntryKind::Timer);
    let spans = timers.filter_map(|entry| match detail.entries.get(&entry.key)? {
        JournalEntry::Due(due) => Some(TimerSpan::new(entry.key.clone(), entry.recorded_at, *due)),
        _ => None,
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use outlive_tasks::store::{AuditEvent, AuditRecord};

    use super::{WorkerSpan, workers};

    fn events(events: &[(u64, &str, Option<&str>)]) -> Vec<AuditRecord> {
        let record = |(at, action, worker): &(u64, &str, Option<&str>)| {
            let event = AuditEvent::new("t", "name:ann", *action);
            AuditRecord::new(*at, *at, event.worker(worker.map(str::to_owned)))
        };
        events.iter().map(record).collect()
    }

    fn span(worker: &str, from: u64, until: Option<u64>, lost: bool) -> WorkerSpan {
        WorkerSpan { worker: worker.to_owned(), from, until, lost }
    }

    #[test]
    fn worker_spans_follow_starts_parks_and_lost_leases() {
        let events = events(&[
            (1, "created", None),
            (2, "started", Some("w1")),
            (3, "updated", None),
            (4, "parked", Some("w1")),
            (5, "resumed", Some("w2")),
            (6, "lease-lost", Some("w2")),
            (7, "resumed", Some("w3")),
            // The process of the worker crashed.
            (9, "resumed", Some("w4")),
            (10, "lease-lost", Some("w3")),
        ]);
        let expected = [
            span("w1", 2, Some(4), false),
            span("w2", 5, Some(6), true),
            span("w3", 7, Some(9), true),
            span("w4", 9, None, false),
        ];
        assert_eq!(workers(&events), expected);
    }

    #[test]
    fn worker_span_ends_with_the_end_of_the_task() {
        let events =
            events(&[(1, "started", Some("w1")), (2, "ended", None), (3, "completed", Some("w1"))]);
        assert_eq!(workers(&events), [span("w1", 1, Some(2), false)]);
    }
}

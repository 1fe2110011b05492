//! Times of the tasks of this process, for metrics.

use std::{collections::HashMap, time::Duration};

use outlive_tasks::store::{MetricRow, NewTask, OutcomeKind, TaskId, UnixMillis};

/// Tasks whose times are in memory. The store is read for the others.
const MAX_TRACKED: usize = 16_384;

/// Ended tasks between two writes for which the store must be read. Further ones are not counted.
const MAX_UNKNOWN: usize = 4_096;

/// Time after which a task that never started is forgotten.
const FORGET_AFTER: u64 = 3_600_000;

const MINUTE: u64 = 60_000;

/// An action of the audit log.
#[derive(Clone, Copy)]
pub(super) struct Action<'a> {
    pub(super) name: &'a str,
    pub(super) has_reason: bool,
}

/// Counts by minute and tool.
pub(super) type Rows = HashMap<(UnixMillis, String), MetricRow>;

/// Tasks that wait for a worker or run in this process, and the counts of ended ones.
#[derive(Default)]
pub(super) struct TaskTimes {
    open: HashMap<TaskId, Times>,
    rows: Rows,
    unknown: Vec<EndedTask>,
    omitted: u64,
}

/// Tool and times of a task, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) tool: Option<String>,
    pub(super) created_at: Option<UnixMillis>,
    pub(super) started_at: Option<UnixMillis>,
}

/// A task that has ended.
#[derive(Debug)]
pub(super) struct EndedTask {
    pub(super) principal: String,
    pub(super) id: TaskId,
    pub(super) kind: OutcomeKind,
    pub(super) ended_at: UnixMillis,
    pub(super) times: Times,
}

impl TaskTimes {
    /// Records the tool of a task that is about to be created.
    pub(super) fn creating(&mut self, task: &NewTask, now: UnixMillis) {
        // A task that waits for input is not in memory.
        if task.input_requests.is_empty() {
            let times = self.track(&task.id, now);
            times.tool = Some(task.tool.clone());
            times.created_at = Some(now);
        }
    }

    /// Forgets a task.
    pub(super) fn forget(&mut self, task: &TaskId) {
        self.open.remove(task);
    }

    /// Takes note of an action of the audit log.
    pub(super) fn note(
        &mut self,
        principal: &str,
        task: &TaskId,
        action: Action<'_>,
        now: UnixMillis,
    ) {
        let kind = match action.name {
            // A promoted call runs when its task is created; only this creation has a reason.
            "created" if !action.has_reason => return,
            "started" | "created" => {
                self.track(task, now).started_at = Some(now);
                return;
            }
            // A waiting task may continue in another process.
            "parked" | "released" | "backoff" | "lease-lost" | "quarantined" => {
                return self.forget(task);
            }
            "completed" => OutcomeKind::Completed,
            "failed" => OutcomeKind::Failed,
            "cancelled" => OutcomeKind::Cancelled,
            "expired" => OutcomeKind::Expired,
            _ => return,
        };
        let times = self.open.remove(task).unwrap_or_default();
        let (principal, id) = (principal.to_owned(), task.clone());
        let ended = EndedTask { principal, id, kind, ended_at: now, times };
        if ended.times.is_complete() {
            ended.count(&mut self.rows);
        } else if self.unknown.len() < MAX_UNKNOWN {
            self.unknown.push(ended);
        } else {
            self.omitted += 1;
        }
    }

    /// Takes the counts, the ended tasks that the store must complete, and the number of omitted
    /// ones.
    pub(super) fn take(&mut self) -> (Rows, Vec<EndedTask>, u64) {
        let Self { rows, unknown, omitted, .. } = self;
        (std::mem::take(rows), std::mem::take(unknown), std::mem::take(omitted))
    }

    fn track(&mut self, task: &TaskId, now: UnixMillis) -> &mut Times {
        if self.open.len() >= MAX_TRACKED && !self.open.contains_key(task) {
            let is_young = |times: &Times| {
                times.created_at.is_some_and(|at| now.saturating_sub(at) < FORGET_AFTER)
            };
            self.open.retain(|_, times| times.started_at.is_some() || is_young(times));
            if self.open.len() >= MAX_TRACKED {
                self.open.clear();
            }
        }
        self.open.entry(task.clone()).or_default()
    }
}

impl Times {
    fn is_complete(&self) -> bool {
        self.tool.is_some() && self.created_at.is_some() && self.started_at.is_some()
    }
}

impl EndedTask {
    /// Adds the task to the counts of its minute. A task without a known tool is not counted.
    pub(super) fn count(self, rows: &mut Rows) {
        let Times { tool: Some(tool), created_at, started_at } = self.times else { return };
        let minute = self.ended_at - self.ended_at % MINUTE;
        let row =
            rows.entry((minute, tool.clone())).or_insert_with(|| MetricRow::new(minute, tool));
        row.ended[match self.kind {
            OutcomeKind::Completed => 0,
            OutcomeKind::Failed => 1,
            OutcomeKind::Cancelled => 2,
            OutcomeKind::Expired => 3,
        }] += 1;
        let bucket = |from: UnixMillis, to: UnixMillis| {
            MetricRow::bucket(Duration::from_millis(to.saturating_sub(from)))
        };
        if let Some(started_at) = started_at {
            row.run[bucket(started_at, self.ended_at)] += 1;
        }
        if let (Some(created_at), Some(started_at)) = (created_at, started_at) {
            row.wait[bucket(created_at, started_at)] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use outlive_tasks::store::{MetricRow, NewTask, TaskId};
    use serde_json::value::to_raw_value;
    use std::time::Duration;

    use super::{Action, MAX_TRACKED, MAX_UNKNOWN, MINUTE, TaskTimes};

    fn task(id: &str) -> NewTask {
        let call = to_raw_value(&serde_json::json!({})).unwrap();
        NewTask::new(TaskId::new(id), "name:ann", "render", "modern", call)
    }

    fn note(times: &mut TaskTimes, id: &str, name: &str, now: u64) {
        let action = Action { name, has_reason: false };
        times.note("name:ann", &TaskId::new(id), action, now);
    }

    fn bucket(millis: u64) -> usize {
        MetricRow::bucket(Duration::from_millis(millis))
    }

    #[test]
    fn task_of_this_process_is_counted_without_the_store() {
        let mut times = TaskTimes::default();
        let now = 7 * MINUTE;
        times.creating(&task("a"), now);
        note(&mut times, "a", "started", now + 40);
        note(&mut times, "a", "completed", now + 9_040);
        times.creating(&task("b"), now);
        note(&mut times, "b", "started", now + 2);
        note(&mut times, "b", "failed", now + MINUTE);
        let (rows, unknown, omitted) = times.take();
        assert!(unknown.is_empty() && omitted == 0);
        let first = &rows[&(now, "render".to_owned())];
        assert_eq!(first.ended, [1, 0, 0, 0]);
        assert_eq!((first.wait[bucket(40)], first.run[bucket(9_000)]), (1, 1));
        let second = &rows[&(now + MINUTE, "render".to_owned())];
        assert_eq!(second.ended, [0, 1, 0, 0]);
        assert!(times.take().0.is_empty());
    }

    #[test]
    fn parked_task_is_completed_from_the_store() {
        let mut times = TaskTimes::default();
        times.creating(&task("a"), 0);
        note(&mut times, "a", "started", 1);
        note(&mut times, "a", "parked", 2);
        assert!(times.open.is_empty());
        note(&mut times, "a", "resumed", 3);
        note(&mut times, "a", "cancelled", 4);
        let (mut rows, unknown, _) = times.take();
        assert!(rows.is_empty());
        let [mut ended] = <[_; 1]>::try_from(unknown).unwrap();
        ended.times.tool = Some("render".to_owned());
        ended.count(&mut rows);
        let row = &rows[&(0, "render".to_owned())];
        assert_eq!((row.ended, row.run.iter().sum::<u64>()), ([0, 0, 1, 0], 0));
    }

    #[test]
    fn promoted_call_runs_from_the_creation_of_its_task() {
        let mut times = TaskTimes::default();
        times.creating(&task("a"), 5);
        let promoted = Action { name: "created", has_reason: true };
        times.note("name:ann", &TaskId::new("a"), promoted, 5);
        note(&mut times, "a", "completed", 25);
        let row = &times.take().0[&(0, "render".to_owned())];
        assert_eq!((row.wait[bucket(0)], row.run[bucket(20)]), (1, 1));
    }

    #[test]
    fn task_that_was_not_created_leaves_nothing() {
        let mut times = TaskTimes::default();
        times.creating(&task("a"), 0);
        times.forget(&TaskId::new("a"));
        assert!(times.open.is_empty());
    }

    #[test]
    fn memory_is_bounded() {
        let mut times = TaskTimes::default();
        for number in 0..2 * MAX_TRACKED {
            times.creating(&task(&number.to_string()), 0);
        }
        assert!(times.open.len() <= MAX_TRACKED);
        for number in 0..2 * MAX_UNKNOWN {
            note(&mut times, &format!("x{number}"), "expired", 0);
        }
        let (_, unknown, omitted) = times.take();
        assert_eq!((unknown.len(), omitted as usize), (MAX_UNKNOWN, MAX_UNKNOWN));
    }
}

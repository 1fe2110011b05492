//! The audit log: actions on tasks, as log events and in the store.
//!
//! Denied lookups are counted instead of recorded, because a caller can make any number of them.
//! Each caller gets one event per minute and kind, with a count.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive_tasks::store::{AuditEvent, AuditLog, TaskId, WorkerId};
use tokio::{sync::Notify, time::Instant};

use crate::server::{
    audit_name::{digest, name_in_audit, opens},
    env::overview::Overview,
    throttle::{RateLimit, Throttle},
};

/// Maximum bytes of events that wait for the store. Further events go to the log only.
const QUEUE_BYTES: usize = 1 << 20;

/// Size of an event without its strings.
const EVENT_BYTES: usize = 128;

/// Number of events in one write: few, so that other writes do not wait for them.
const BATCH: usize = 128;

/// Delay in which events are collected for one write.
const GATHER: Duration = Duration::from_millis(100);

/// Interval over which denied lookups are counted for one event.
const WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of callers counted separately in an interval. Further callers are counted
/// together.
const MAX_CALLERS: usize = 1_024;

/// Fraction of `max_events` that one caller may add per day: one tenth.
const SHARE: u64 = 10;

/// Writes audit events in the background, so that a poll does not wait for a commit.
pub(crate) struct Auditor {
    queue: Arc<Queue>,
    /// Rate limit on the events of each caller.
    shares: Arc<Throttle>,
    /// Counts of a server with a console.
    overview: Option<Arc<Overview>>,
}

struct Queue {
    store: Arc<dyn AuditLog>,
    retention: Duration,
    max_events: u64,
    waiting: Mutex<Waiting>,
    some: Notify,
}

#[derive(Default)]
struct Waiting {
    events: Vec<Event>,
    bytes: usize,
    /// Number of events that did not fit.
    dropped: u64,
    /// Denied lookups by caller and kind since the interval started.
    denied: HashMap<(String, &'static str), Denied>,
    since: Option<Instant>,
}

/// An action on a task.
struct Event {
    principal: String,
    task: TaskId,
    what: &'static str,
    cause: Option<String>,
    /// Worker that performed the action.
    worker: Option<WorkerId>,
}

/// Denied lookups of one caller.
struct Denied {
    principal: String,
    /// Task ID of the first denied lookup.
    first: TaskId,
    count: u64,
}

impl Auditor {
    /// Starts the writer. Must be called inside a Tokio runtime.
    pub(crate) fn start(
        store: Arc<dyn AuditLog>,
        retention: Duration,
        max_events: u64,
        overview: Option<Arc<Overview>>,
    ) -> Self {
        let waiting = Mutex::default();
        let queue = Queue { store, retention, max_events, waiting, some: Notify::new() };
        let queue = Arc::new(queue);
        let weak = Arc::downgrade(&queue);
        tokio::spawn(async move {
            while let Some(queue) = weak.upgrade() {
                // Wakes up regularly to close intervals, and to stop when the auditor is dropped.
                let _ = tokio::time::timeout(Duration::from_secs(5), queue.some.notified()).await;
                drop(queue);
                tokio::time::sleep(GATHER).await;
                let Some(queue) = weak.upgrade() else { return };
                queue.write(false).await;
            }
        });
        let shares = Arc::new(Throttle::new(Some(share_of(max_events)), None));
        Self { queue, shares, overview }
    }

    /// Records an action on a task that no worker performed.
    pub(crate) fn note(
        &self,
        principal: &str,
        task: &TaskId,
        what: &'static str,
        cause: Option<String>,
    ) {
        self.note_by(None, principal, task, what, cause);
    }

    /// Records an action on a task.
    pub(crate) fn note_by(
        &self,
        worker: Option<&WorkerId>,
        principal: &str,
        task: &TaskId,
        what: &'static str,
        cause: Option<String>,
    ) {
        if let Some(overview) = &self.overview {
            overview.note(principal, task, what, cause.as_deref());
        }
        let shown = || name_in_audit(principal, task.as_str());
        tracing::info!(target: "outlive::audit", action = what, task_id = shown(), principal, reason = cause);
        let (principal, task, worker) = (principal.to_owned(), task.clone(), worker.cloned());
        self.store(Event { principal, task, what, cause, worker });
    }

    /// Records an action without a line in the log.
    pub(crate) fn note_quietly(
        &self,
        principal: &str,
        task: TaskId,
        what: &'static str,
        cause: Option<String>,
    ) {
        self.store(Event { principal: principal.to_owned(), task, what, cause, worker: None });
    }

    fn store(&self, event: Event) {
        if self.shares.enter(&event.principal, std::time::Instant::now()).is_err() {
            // A caller over its share is counted, so that it cannot displace the events of other
            // callers.
            let caller = event.principal.clone();
            return self.count(caller, &event.principal, &event.task, "more-events");
        }
        if self.queue.lock().push(event) {
            self.queue.some.notify_one();
        }
    }

    /// Counts a denied or rate-limited lookup of a caller.
    pub(crate) fn count(&self, caller: String, principal: &str, task: &TaskId, what: &'static str) {
        let mut waiting = self.queue.lock();
        waiting.since.get_or_insert_with(Instant::now);
        let is_full = waiting.denied.len() >= MAX_CALLERS;
        let key = match is_full && !waiting.denied.contains_key(&(caller.clone(), what)) {
            true => (String::new(), what),
            false => (caller, what),
        };
        let denied = waiting.denied.entry(key).or_insert_with(|| Denied {
            principal: principal.to_owned(),
            first: task.clone(),
            count: 0,
        });
        denied.count += 1;
    }

    /// Writes the waiting events before the process ends.
    pub(crate) async fn flush(&self) {
        self.queue.write(true).await;
    }
}

/// Returns the rate limit of one caller's events.
fn share_of(max_events: u64) -> RateLimit {
    const DAY: f64 = 86_400.0;
    let share = u32::try_from(max_events / SHARE).unwrap_or(u32::MAX).max(1);
    RateLimit::per_second(f64::from(share) / DAY).burst(share)
}

impl Waiting {
    /// Adds an event if it fits. Returns whether the queue was empty before.
    fn push(&mut self, event: Event) -> bool {
        let cause = event.cause.as_ref().map_or(0, String::len);
        let bytes = EVENT_BYTES + event.principal.len() + event.task.as_str().len() + cause;
        if self.bytes + bytes > QUEUE_BYTES {
            self.dropped += 1;
            return false;
        }
        self.bytes += bytes;
        self.events.push(event);
        self.events.len() == 1
    }

    /// Converts the counts into events if the interval is over or the process ends.
    fn close_window(&mut self, ends: bool) {
        if self.since.is_none_or(|since| !ends && since.elapsed() < WINDOW) {
            return;
        }
        self.since = None;
        for ((caller, what), denied) in std::mem::take(&mut self.denied) {
            let Denied { principal, first, count } = denied;
            let others = if caller.is_empty() { " of several callers" } else { "" };
            let cause =
                format!("{count} times{others} in a minute; the task ID is that of the first");
            // The task ID may belong to another principal, so the log shows only a prefix.
            let task: String = first.as_str().chars().take(8).chain(['…']).collect();
            tracing::info!(target: "outlive::audit", action = what, task_id = task, principal, reason = cause);
            let cause = Some(cause);
            self.push(Event { principal, task: first, what, cause, worker: None });
        }
    }
}

impl Queue {
    async fn write(&self, ends: bool) {
        let (events, dropped) = {
            let mut waiting = self.lock();
            waiting.close_window(ends);
            waiting.bytes = 0;
            (std::mem::take(&mut waiting.events), std::mem::take(&mut waiting.dropped))
        };
        if dropped > 0 {
            tracing::warn!(dropped, "audit queue was full; the dropped events are only in the log");
        }
        let mut events = written(events);
        while !events.is_empty() {
            let rest = events.split_off(events.len().min(BATCH));
            if let Err(error) = self.store.append(events, self.retention, self.max_events).await {
                tracing::warn!(%error, "audit events cannot be written to the store");
            }
            events = rest;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Converts events for the store. Each task ID is hashed once, because most tasks have several
/// events.
fn written(events: Vec<Event>) -> Vec<AuditEvent> {
    let mut digests = HashMap::new();
    let written = events.into_iter().map(|Event { principal, task, what, cause, worker }| {
        let shown = match opens(&principal) && !task.as_str().is_empty() {
            false => task.as_str().to_owned(),
            true => digests.entry(task).or_insert_with_key(|task| digest(task.as_str())).clone(),
        };
        let worker = worker.map(|worker| worker.as_str().to_owned());
        AuditEvent::new(shown, principal, what).reason(cause).worker(worker)
    });
    written.collect()
}

#[cfg(test)]
mod tests {
    use outlive_tasks::store::TaskId;

    use super::{Event, QUEUE_BYTES, Waiting};

    #[test]
    fn waiting_events_are_bounded_in_bytes() {
        let mut waiting = Waiting::default();
        let cause = || Some("x".repeat(100 << 10));
        for number in 0..1_000 {
            let task = TaskId::new(number.to_string());
            let (principal, cause) = ("name:eve".into(), cause());
            waiting.push(Event { principal, task, what: "x", cause, worker: None });
        }
        let texts = waiting.events.iter().filter_map(|event| event.cause.as_ref());
        let held: usize = texts.map(String::len).sum();
        assert!(held <= QUEUE_BYTES, "{held} bytes wait");
        assert_eq!(waiting.dropped as usize, 1_000 - waiting.events.len(), "the rest is counted");
        assert!(!waiting.events.is_empty());
    }
}

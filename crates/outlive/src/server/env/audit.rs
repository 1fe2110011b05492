//! Who did what to which task: as events for the process's log, and in the store for whoever asks
//! later.
//!
//! Look-ups in vain are counted, not written one by one: a caller can make as many of them as it
//! likes. Each caller has one event for each minute and kind, with a count.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive_tasks::store::{AuditEvent, AuditLog, TaskId};
use tokio::{sync::Notify, time::Instant};

use crate::server::{
    audit_name::{digest, name_in_audit, opens},
    throttle::{RateLimit, Throttle},
};

/// How many bytes of events wait to be written; what comes on top is in the log only.
const QUEUE_BYTES: usize = 1 << 20;

/// What an event takes beside its texts.
const EVENT_BYTES: usize = 128;

/// Number of events in one write: few, so that other writes do not wait for them.
const BATCH: usize = 128;

/// How long events are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(100);

/// For how long look-ups in vain are counted before one event says how many there were.
const WINDOW: Duration = Duration::from_secs(60);

/// How many callers are counted one by one in a window; the rest are counted together.
const MAX_CALLERS: usize = 1_024;

/// Which part of all events one caller may add a day.
const SHARE: u64 = 10;

/// Writes events down, in the background: a poll is not to wait for a commit.
pub(crate) struct Auditor {
    queue: Arc<Queue>,
    /// How many events each caller adds.
    shares: Arc<Throttle>,
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
    /// How many events did not fit.
    dropped: u64,
    /// Look-ups in vain, by caller and kind, since the window began.
    denied: HashMap<(String, &'static str), Denied>,
    since: Option<Instant>,
}

/// What has happened to a task.
struct Event {
    principal: String,
    task: TaskId,
    what: &'static str,
    cause: Option<String>,
}

/// Look-ups in vain of one caller.
struct Denied {
    principal: String,
    /// The first of the tasks that were asked for.
    first: TaskId,
    count: u64,
}

impl Auditor {
    /// Must be called inside a runtime.
    pub(crate) fn start(store: Arc<dyn AuditLog>, retention: Duration, max_events: u64) -> Self {
        let waiting = Mutex::default();
        let queue = Queue { store, retention, max_events, waiting, some: Notify::new() };
        let queue = Arc::new(queue);
        let weak = Arc::downgrade(&queue);
        tokio::spawn(async move {
            while let Some(queue) = weak.upgrade() {
                // Looked at again now and then: windows end, and so does whoever fills it.
                let _ = tokio::time::timeout(Duration::from_secs(5), queue.some.notified()).await;
                drop(queue);
                tokio::time::sleep(GATHER).await;
                let Some(queue) = weak.upgrade() else { return };
                queue.write(false).await;
            }
        });
        Self { queue, shares: Arc::new(Throttle::new(Some(share_of(max_events)), None)) }
    }

    /// Something has happened to a task.
    pub(crate) fn note(
        &self,
        principal: &str,
        task: &TaskId,
        what: &'static str,
        cause: Option<String>,
    ) {
        let shown = || name_in_audit(principal, task.as_str());
        tracing::info!(target: "outlive::audit", action = what, task_id = shown(), principal, reason = cause);
        if self.shares.enter(principal, std::time::Instant::now()).is_err() {
            // It has no end either, and must not take the place of what others did.
            return self.count(principal.to_owned(), principal, task, "more-events");
        }
        let (principal, task) = (principal.to_owned(), task.clone());
        if self.queue.lock().push(Event { principal, task, what, cause }) {
            self.queue.some.notify_one();
        }
    }

    /// A caller has looked for a task in vain, or too often.
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

    /// Writes what waits, because the process ends.
    pub(crate) async fn flush(&self) {
        self.queue.write(true).await;
    }
}

/// What one caller may add of all events.
fn share_of(max_events: u64) -> RateLimit {
    const DAY: f64 = 86_400.0;
    let share = u32::try_from(max_events / SHARE).unwrap_or(u32::MAX).max(1);
    RateLimit::per_second(f64::from(share) / DAY).burst(share)
}

impl Waiting {
    /// Takes an event, if it fits, and says whether it is the first.
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

    /// Makes events of what was counted, if its window is over or the process ends.
    fn close_window(&mut self, ends: bool) {
        if self.since.is_none_or(|since| !ends && since.elapsed() < WINDOW) {
            return;
        }
        self.since = None;
        for ((caller, what), denied) in std::mem::take(&mut self.denied) {
            let Denied { principal, first, count } = denied;
            let others = if caller.is_empty() { " of several callers" } else { "" };
            let cause = format!("{count} times{others} in a minute; this is the first");
            // Ids of others are not written to a log whole.
            let task: String = first.as_str().chars().take(8).chain(['…']).collect();
            tracing::info!(target: "outlive::audit", action = what, task_id = task, principal, reason = cause);
            self.push(Event { principal, task: first, what, cause: Some(cause) });
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
            tracing::warn!(dropped, "more happened than could be written; it is in the log only");
        }
        let mut events = written(events);
        while !events.is_empty() {
            let rest = events.split_off(events.len().min(BATCH));
            if let Err(error) = self.store.append(events, self.retention, self.max_events).await {
                tracing::warn!(%error, "events could not be written to the store");
            }
            events = rest;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Events as a store keeps them. Most tasks have several among them, and one digest.
fn written(events: Vec<Event>) -> Vec<AuditEvent> {
    let mut digests = HashMap::new();
    let written = events.into_iter().map(|Event { principal, task, what, cause }| {
        let shown = match opens(&principal) {
            false => task.as_str().to_owned(),
            true => digests.entry(task).or_insert_with_key(|task| digest(task.as_str())).clone(),
        };
        AuditEvent::new(shown, principal, what).reason(cause)
    });
    written.collect()
}

#[cfg(test)]
mod tests {
    use outlive_tasks::store::TaskId;

    use super::{Event, QUEUE_BYTES, Waiting};

    #[test]
    fn events_that_wait_are_bounded_in_bytes() {
        let mut waiting = Waiting::default();
        let cause = || Some("x".repeat(100 << 10));
        for number in 0..1_000 {
            let task = TaskId::new(number.to_string());
            waiting.push(Event { principal: "name:eve".into(), task, what: "x", cause: cause() });
        }
        let texts = waiting.events.iter().filter_map(|event| event.cause.as_ref());
        let held: usize = texts.map(String::len).sum();
        assert!(held <= QUEUE_BYTES, "{held} bytes wait");
        assert_eq!(waiting.dropped as usize, 1_000 - waiting.events.len(), "the rest is counted");
        assert!(!waiting.events.is_empty());
    }
}

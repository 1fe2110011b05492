//! Who did what to which task: as events for the process's log, and in the store for whoever asks
//! later.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use outlive_protocol::Principal;
use outlive_tasks::store::{AuditEvent, Store, TaskId};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use crate::hex::hex;

/// How many events wait to be written; what comes on top is in the log only.
const QUEUE: usize = 10_000;

/// How long events are gathered before they are written together.
const GATHER: Duration = Duration::from_millis(100);

/// Writes events down, in the background: a poll is not to wait for a commit.
pub(super) struct Auditor {
    queue: Arc<Queue>,
}

#[derive(Default)]
struct Queue {
    events: Mutex<Vec<Event>>,
    some: Notify,
}

/// What has happened to a task.
struct Event {
    principal: String,
    task: TaskId,
    what: &'static str,
    cause: Option<String>,
}

impl Auditor {
    /// Must be called inside a runtime.
    pub(super) fn start(store: &Arc<dyn Store>, retention: Duration) -> Self {
        let queue = Arc::new(Queue::default());
        let (store, weak) = (Arc::clone(store), Arc::downgrade(&queue));
        tokio::spawn(async move {
            while let Some(queue) = weak.upgrade() {
                // Looked at again now and then, to end with whoever fills it.
                let _ = tokio::time::timeout(Duration::from_secs(5), queue.some.notified()).await;
                drop(queue);
                tokio::time::sleep(GATHER).await;
                let Some(queue) = weak.upgrade() else { return };
                let events = std::mem::take(&mut *queue.lock());
                if events.is_empty() {
                    continue;
                }
                if let Err(error) = store.record(written(events), retention).await {
                    tracing::warn!(%error, "events could not be written to the store");
                }
            }
        });
        Self { queue }
    }

    /// Something has happened to a task.
    pub(super) fn note(
        &self,
        principal: &str,
        task: &TaskId,
        what: &'static str,
        cause: Option<String>,
    ) {
        let shown = || shown(principal, task.as_str());
        tracing::info!(target: "outlive::audit", what, task = shown(), principal, cause);
        let mut events = self.queue.lock();
        if events.len() < QUEUE {
            let (principal, task) = (principal.to_owned(), task.clone());
            events.push(Event { principal, task, what, cause });
        }
        let first = events.len() == 1;
        drop(events);
        if first {
            self.queue.some.notify_one();
        }
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
        AuditEvent { task: shown, principal, what: what.to_owned(), cause }
    });
    written.collect()
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task's id as it is written down: where the id is all that one needs to open the task, a digest
/// of it.
pub(crate) fn shown(principal: &str, task: &str) -> String {
    if opens(principal) { digest(task) } else { task.to_owned() }
}

/// Whether somebody needs no more than the id of a task to open it.
fn opens(principal: &str) -> bool {
    Principal::from_key(principal).is_none_or(|principal| principal.is_anonymous())
}

fn digest(task: &str) -> String {
    format!("sha256:{}", hex(&Sha256::digest(task)[..16]))
}

//! Who did what to which task: as events for the process's log, and in the store for whoever asks
//! later.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use outlive_protocol::Principal;
use outlive_tasks::store::{AuditEvent, Store};
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
    events: Mutex<Vec<AuditEvent>>,
    some: Notify,
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
                if let Err(error) = store.record(events, retention).await {
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
        task: &str,
        what: &'static str,
        cause: Option<String>,
    ) {
        let task = shown(principal, task);
        tracing::info!(target: "outlive::audit", what, task, principal, cause);
        let mut events = self.queue.lock();
        if events.len() < QUEUE {
            let principal = principal.to_owned();
            events.push(AuditEvent { task, principal, what: what.to_owned(), cause });
        }
        let first = events.len() == 1;
        drop(events);
        if first {
            self.queue.some.notify_one();
        }
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<AuditEvent>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task's id as it is written down: where the id is all that one needs to open the task, a digest
/// of it.
pub(crate) fn shown(principal: &str, task: &str) -> String {
    match Principal::from_key(principal) {
        Some(principal) if !principal.is_anonymous() => task.to_owned(),
        _ => {
            format!("sha256:{}", hex(&Sha256::digest(task)[..16]))
        }
    }
}

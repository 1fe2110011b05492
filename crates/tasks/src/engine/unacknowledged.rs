//! [`UnacknowledgedTask`]: a committed task whose ID has not been sent to its client.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::{events::EngineEvent, state::EngineState};
use crate::store::{NewTask, StoreError, TaskId, UnixMillis};

/// A committed task whose ID has not been sent to its client.
///
/// Dropping the value cancels the task, unless the task has an idempotency key: a client with a key can
/// retry and find the task.
#[must_use = "dropping this value cancels the task"]
pub struct UnacknowledgedTask {
    engine: Arc<EngineState>,
    principal: String,
    task: TaskId,
    cancel_on_drop: bool,
    created_at: UnixMillis,
}

impl UnacknowledgedTask {
    pub(super) fn new(engine: &Arc<EngineState>, task: &NewTask) -> Self {
        Self {
            engine: Arc::clone(engine),
            principal: task.principal.clone(),
            task: task.id.clone(),
            cancel_on_drop: task.idempotency.is_none(),
            created_at: 0,
        }
    }

    /// Returns the task's ID.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// Returns when the store created the task.
    pub fn created_at(&self) -> UnixMillis {
        self.created_at
    }

    pub(super) fn observe(&self, event: EngineEvent<'_>) {
        self.engine.observe(&self.principal, &self.task, event);
    }

    pub(super) fn set_created(&mut self, at: UnixMillis) {
        self.created_at = at;
    }

    /// Marks the ID as sent to the client, or as not needed.
    pub fn acknowledge(mut self) {
        self.cancel_on_drop = false;
    }

    /// Cancels a task that may be in the store and that does not run in this process.
    pub(super) fn revoke(mut self) {
        self.cancel_on_drop = false;
        self.cancel(true);
    }

    fn cancel(&self, at_once: bool) {
        // Without a runtime, the process is about to exit, and exiting cancels no task.
        let Ok(runtime) = Handle::try_current() else { return };
        let engine = Arc::clone(&self.engine);
        let (principal, task) = (self.principal.clone(), self.task.clone());
        runtime.spawn(async move { cancel(&engine, &principal, &task, at_once).await });
    }
}

impl Drop for UnacknowledgedTask {
    fn drop(&mut self) {
        if self.cancel_on_drop {
            self.cancel(false);
        }
    }
}

/// Cancels a task if it exists. Retries for as long as a worker may have a lease on it.
async fn cancel(engine: &EngineState, principal: &str, task: &TaskId, at_once: bool) {
    let began = Instant::now();
    let mut delay = Duration::from_millis(50);
    loop {
        match engine.store.cancel(principal, task, at_once, engine.config.retention).await {
            Ok(Some(_)) => return engine.observe(principal, task, EngineEvent::Unacknowledged),
            Ok(None) => return,
            Err(StoreError::Unavailable(_))
                if began.elapsed() + delay < engine.config.lease_duration =>
            {
                sleep(delay).await;
                delay = (delay * 2).min(Duration::from_secs(2));
            }
            Err(error) => {
                tracing::warn!(%error, "could not cancel an unacknowledged task");
                return;
            }
        }
    }
}

impl fmt::Debug for UnacknowledgedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnacknowledgedTask").field(&self.task).finish()
    }
}

//! [`UnacknowledgedTask`]: a committed task whose ID has not been sent to its client.

use std::{fmt, mem, sync::Arc};

use tokio::runtime::Handle;

use super::{events::EngineEvent, state::EngineState};
use crate::store::{Departure, NewTask, TaskId, UnixMillis, WorkerId};

/// A committed task whose ID has not been sent to its client.
///
/// Dropping the value cancels the task, unless a retry can find it. A task with an idempotency key
/// then continues. A task with a bridge continues unattended: a repeated call joins it, and the sweep
/// cancels it after the abandon timeout.
#[must_use = "dropping this value cancels the task, or leaves it unattended"]
pub struct UnacknowledgedTask {
    engine: Arc<EngineState>,
    principal: String,
    task: TaskId,
    on_drop: OnDrop,
    created_at: UnixMillis,
}

/// Effect of dropping an [`UnacknowledgedTask`].
enum OnDrop {
    Nothing,
    Cancel,
    /// The call of this worker stops waiting for the task.
    Leave(WorkerId),
}

impl UnacknowledgedTask {
    pub(super) fn new(engine: &Arc<EngineState>, task: &NewTask) -> Self {
        Self {
            engine: Arc::clone(engine),
            principal: task.principal.clone(),
            task: task.id.clone(),
            on_drop: match (&task.bridge, &task.idempotency) {
                (Some(bridge), _) => OnDrop::Leave(bridge.worker.clone()),
                (None, Some(_)) => OnDrop::Nothing,
                (None, None) => OnDrop::Cancel,
            },
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
        self.on_drop = OnDrop::Nothing;
    }

    /// Cancels a task that may be in the store and that does not run in this process.
    pub(super) fn revoke(mut self) {
        self.on_drop = OnDrop::Nothing;
        self.cancel(true);
    }

    fn cancel(&self, at_once: bool) {
        self.spawn(move |engine, principal, task| async move {
            let cancel =
                || engine.store.cancel(&principal, &task, at_once, engine.config.retention);
            match engine.retry(cancel).await {
                Ok(Some(_)) => engine.observe(&principal, &task, EngineEvent::Unacknowledged),
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "could not cancel an unacknowledged task"),
            }
        });
    }

    fn leave(&self, worker: WorkerId) {
        self.spawn(move |engine, principal, task| async move {
            let leave = || engine.store.leave(&principal, &task, &worker, Departure::Lost);
            if let Err(error) = engine.retry(leave).await {
                tracing::warn!(%error, "could not leave an unacknowledged task");
            }
        });
    }

    fn spawn<F>(&self, work: impl FnOnce(Arc<EngineState>, String, TaskId) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // Without a runtime, the process is about to exit, and exiting cancels no task.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(work(Arc::clone(&self.engine), self.principal.clone(), self.task.clone()));
    }
}

impl Drop for UnacknowledgedTask {
    fn drop(&mut self) {
        match mem::replace(&mut self.on_drop, OnDrop::Nothing) {
            OnDrop::Nothing => {}
            OnDrop::Cancel => self.cancel(false),
            OnDrop::Leave(worker) => self.leave(worker),
        }
    }
}

impl fmt::Debug for UnacknowledgedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UnacknowledgedTask").field(&self.task).finish()
    }
}

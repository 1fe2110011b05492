//! A task that whoever asked for it has not been told of yet.

use std::{fmt, sync::Arc, time::Duration};

use tokio::{
    runtime::Handle,
    time::{Instant, sleep},
};

use super::{EngineEvent, Inner};
use crate::store::{NewTask, StoreError, TaskId, UnixMillis};

/// A task that nobody has been told of. If this is dropped nobody ever will be, and the task is
/// cancelled; unless it was made under a key, because who has a key asks again.
#[must_use = "dropped, it cancels the task"]
pub struct UnacknowledgedTask {
    inner: Arc<Inner>,
    principal: String,
    task: TaskId,
    asks_again: bool,
    made: UnixMillis,
}

impl UnacknowledgedTask {
    pub(super) fn of(inner: &Arc<Inner>, task: &NewTask) -> Self {
        Self {
            inner: Arc::clone(inner),
            principal: task.principal.clone(),
            task: task.id.clone(),
            asks_again: task.idempotency.is_some(),
            made: 0,
        }
    }

    /// Which task it is.
    pub fn task(&self) -> &TaskId {
        &self.task
    }

    /// When it was made.
    pub fn created_at(&self) -> UnixMillis {
        self.made
    }

    pub(super) fn saw(&self, seen: EngineEvent<'_>) {
        self.inner.saw(&self.principal, &self.task, seen);
    }

    pub(super) fn was_made(&mut self, at: UnixMillis) {
        self.made = at;
    }

    /// Whoever asked for it knows of it, or needs not to.
    pub fn acknowledge(mut self) {
        self.asks_again = true;
    }

    /// Nobody knows whether the task was made, and nobody here runs it: it is ended if it is there.
    pub(super) fn never_was(mut self) {
        self.asks_again = true;
        self.cancel(true);
    }

    fn cancel(&self, at_once: bool) {
        // Without a runtime the process is about to end: that cancels nothing.
        let Ok(runtime) = Handle::try_current() else { return };
        let inner = Arc::clone(&self.inner);
        let (principal, task) = (self.principal.clone(), self.task.clone());
        runtime.spawn(async move { cancel(&inner, &principal, &task, at_once).await });
    }
}

impl Drop for UnacknowledgedTask {
    fn drop(&mut self) {
        if !self.asks_again {
            self.cancel(false);
        }
    }
}

/// Cancels a task, if it is there. Tries for as long as a worker may have it.
async fn cancel(inner: &Inner, principal: &str, task: &TaskId, at_once: bool) {
    let began = Instant::now();
    let mut pause = Duration::from_millis(50);
    loop {
        match inner.store.cancel(principal, task, at_once, inner.config.retention).await {
            Ok(Some(_)) => return inner.saw(principal, task, EngineEvent::Undelivered),
            Ok(None) => return,
            Err(StoreError::Unavailable(_))
                if began.elapsed() + pause < inner.config.lease_duration =>
            {
                sleep(pause).await;
                pause = (pause * 2).min(Duration::from_secs(2));
            }
            Err(error) => {
                tracing::warn!(%error, "a task that nobody knows of could not be cancelled");
                return;
            }
        }
    }
}

impl fmt::Debug for UnacknowledgedTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Untold").field(&self.task).finish()
    }
}

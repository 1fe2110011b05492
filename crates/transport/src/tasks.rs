//! Background tasks of a transport, with one owner.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{runtime::Handle, task::JoinSet};

/// Set of spawned tasks. Dropping it aborts them.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Spawns a future. Drops the future outside of a runtime, because the runtime is then shutting
    /// down.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tasks = self.lock();
        // Remove finished tasks, so that the set does not grow without bound.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(future, &runtime);
    }

    /// Waits until all tasks have finished.
    pub(crate) async fn finished(&self) {
        loop {
            // Taken out of the mutex, so that other threads can spawn tasks while this one waits.
            let mut tasks = std::mem::take(&mut *self.lock());
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    /// Aborts all tasks.
    pub(crate) fn abort_all(&self) {
        self.lock().abort_all();
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

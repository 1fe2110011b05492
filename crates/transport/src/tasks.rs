//! The tasks that a transport has started, so that all of them have an owner.

use std::{
    future::Future,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::{runtime::Handle, task::JoinSet};

/// Spawned work. Dropping it aborts what still runs.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<JoinSet<()>>);

impl Tasks {
    /// Runs a future on its own. Outside of a runtime, which is being torn down then, it is dropped.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let Ok(runtime) = Handle::try_current() else { return };
        let mut tasks = self.lock();
        // Finished ones are let go here, so that the set does not grow with the number ever started.
        while tasks.try_join_next().is_some() {}
        tasks.spawn_on(future, &runtime);
    }

    /// Waits until nothing runs any more.
    pub(crate) async fn finished(&self) {
        loop {
            // Taken out, because waiting while the lock is held would keep others from spawning.
            let mut tasks = std::mem::take(&mut *self.lock());
            if tasks.is_empty() {
                return;
            }
            while tasks.join_next().await.is_some() {}
        }
    }

    /// Ends everything at once.
    pub(crate) fn abort_all(&self) {
        self.lock().abort_all();
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

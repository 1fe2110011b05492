//! State of the memory store: its tables, locks and clock.

use std::{
    fmt,
    future::ready,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use super::{key_values::KeyValues, metrics::Metrics, table::Tasks};
use crate::{
    store::{ChangeListener, ChangeSource, StoreError, StoreFuture, TaskId, UnixMillis},
    time::{millis, wall_clock},
};

/// A store in memory, for tests and for servers that may lose their tasks.
#[derive(Default)]
pub struct MemoryStore {
    // Std mutexes: no code awaits while one is locked. `key_values` is locked before `tasks`.
    tasks: Mutex<Tasks>,
    pub(super) key_values: Mutex<KeyValues>,
    pub(super) metrics: Mutex<Metrics>,
    pub(super) listeners: Mutex<Vec<ChangeListener>>,
    /// Offset that tests have added to the clock, in milliseconds.
    advanced: AtomicU64,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Advances the store's clock, for tests.
    pub fn advance_clock(&self, span: Duration) {
        self.advanced.fetch_add(millis(span), Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> UnixMillis {
        wall_clock() + self.advanced.load(Ordering::Relaxed)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Tasks> {
        locked(&self.tasks)
    }

    pub(super) fn notify(&self, task: &TaskId, source: ChangeSource) {
        let listeners = locked(&self.listeners).clone();
        listeners.iter().for_each(|listener| listener(task, source));
    }
}

pub(super) fn done<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StoreFuture<'a, T> {
    Box::pin(ready(result))
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("tasks", &self.lock().iter().count())
            .finish_non_exhaustive()
    }
}

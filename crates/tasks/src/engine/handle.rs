//! [`Engine`]: operations of a server on the tasks of its store.

use std::{
    fmt,
    sync::{Arc, PoisonError, Weak},
    time::Duration,
};

use tokio::sync::Notify;

use super::{
    changes::ChangeStream, config::EngineConfig, events::EngineObserver, runner::TaskRunner,
    schedule, state::EngineState,
};
use crate::store::{
    CancelOutcome, PageLimit, Store, StoreError, StoreFuture, StoredSegments, TaskId, TaskOutcome,
    TaskRecord, WorkerId, assemble,
};

/// Runs the tasks of a store. Clones share one engine.
#[derive(Clone)]
pub struct Engine(pub(super) Arc<EngineState>);

impl Engine {
    /// Starts an engine for a store. Must be called inside a Tokio runtime.
    pub fn start(
        store: &Arc<dyn Store>,
        runner: Arc<dyn TaskRunner>,
        observer: Option<Arc<dyn EngineObserver>>,
        worker_id: WorkerId,
        config: EngineConfig,
    ) -> Self {
        let engine =
            Arc::new(EngineState::new(Arc::clone(store), runner, observer, worker_id, config));
        let listener = Arc::downgrade(&engine);
        store.subscribe(Arc::new(move |task, source| {
            if let Some(engine) = listener.upgrade() {
                engine.changed(task, source);
            }
        }));
        tokio::spawn(schedule::claims(Arc::downgrade(&engine)));
        tokio::spawn(schedule::renewals(Arc::downgrade(&engine)));
        Self(engine)
    }

    /// Returns the store of the tasks.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.0.store
    }

    /// Returns the ID of this process as a worker.
    pub fn worker_id(&self) -> &WorkerId {
        &self.0.worker_id
    }

    /// Returns the engine's configuration.
    pub fn config(&self) -> &EngineConfig {
        &self.0.config
    }

    /// Returns a task of this principal, with its whole result. Returns `None` also if the parts of
    /// its result were deleted. [`TaskStore::get`](crate::store::TaskStore::get) reads no parts.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub async fn get(
        &self,
        principal: &str,
        task: &TaskId,
    ) -> Result<Option<TaskRecord>, StoreError> {
        let store = &*self.0.store;
        let Some(mut record) = store.get(principal, task).await? else { return Ok(None) };
        if let Some(TaskOutcome::LargeResult(large)) = &record.outcome {
            // Boxed, because few results are large and every waiting call has this future.
            let whole = Box::pin(assemble(store, principal, task, large)).await?;
            let Some(result) = whole else { return Ok(None) };
            record.outcome = Some(TaskOutcome::Result(result));
        }
        Ok(Some(record))
    }

    /// Cancels a task of this principal.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    pub async fn cancel(
        &self,
        principal: &str,
        task: &TaskId,
        at_once: bool,
    ) -> Result<Option<CancelOutcome>, StoreError> {
        self.0.store.cancel(principal, task, at_once, self.0.config.retention).await
    }

    /// Sweeps the store immediately, for a caller that has seen an expired task. The engine also
    /// sweeps periodically.
    pub async fn sweep(&self) {
        schedule::sweep(&self.0).await;
    }

    /// Executes a store operation for which no caller waits. While the store is unavailable, repeats
    /// the operation for the duration of a lease.
    ///
    /// A store may execute an operation and report that it is unavailable, so the operation may take
    /// effect twice.
    ///
    /// # Errors
    ///
    /// Returns the last error of the store.
    pub async fn retry<'a, T>(
        &self,
        operation: impl Fn() -> StoreFuture<'a, T>,
    ) -> Result<T, StoreError> {
        self.0.retry(operation).await
    }

    /// Returns a notification that fires whenever the task may have changed. Call this method
    /// before reading the task, so that no change is missed in between.
    pub fn watch(&self, task: &TaskId) -> Arc<Notify> {
        let mut watched = self.0.lock_watched();
        if let Some(notify) = watched.get(task).and_then(Weak::upgrade) {
            return notify;
        }
        // Removes entries without a waiter before the map grows.
        if watched.len() == watched.capacity() {
            watched.retain(|_, notify| notify.strong_count() > 0);
        }
        let notify = Arc::new(Notify::new());
        watched.insert(task.clone(), Arc::downgrade(&notify));
        notify
    }

    /// Returns the written segments after a sequence number, if the task of this principal runs in
    /// this process and has more. Reads memory instead of the store, and does not report the task's
    /// status.
    pub fn written_segments(
        &self,
        principal: &str,
        task: &TaskId,
        after: u64,
        limit: PageLimit,
    ) -> Option<StoredSegments> {
        let run = self.0.lock_running().get(task).and_then(|signals| signals.run.clone())?;
        (*run.principal == *principal).then(|| run.journal.written_after(after, limit))?
    }

    /// Returns a stream of the changes of these tasks from now on.
    pub fn changes(&self, tasks: &[TaskId]) -> ChangeStream {
        let (changes, listening) = ChangeStream::new(tasks);
        let mut all = self.0.listening.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|listening| listening.strong_count() > 0);
        all.push(Arc::downgrade(&listening));
        changes
    }

    /// Stops claiming and releases all tasks to other replicas. A task that another replica can
    /// continue is released between two steps. Other tasks are released at the end of the timeout.
    ///
    /// Runs may still be promoted afterwards: see [`Engine::drain_promoted`].
    pub async fn drain(&self, timeout: Duration) {
        let engine = &self.0;
        engine.stopping.send_replace(true);
        engine.due.notify_one();
        let all_ended = async {
            // A claim takes its slots before it is sent, and a lease that it returns too late would
            // not be released.
            let all = u32::try_from(engine.config.max_running).unwrap_or(u32::MAX);
            let _slots = engine.slots.acquire_many(all).await;
            loop {
                let ended = engine.ended.notified();
                if engine.lock_running().is_empty() {
                    return;
                }
                ended.await;
            }
        };
        if tokio::time::timeout(timeout, all_ended).await.is_err() {
            let late = engine.lock_running().len();
            tracing::warn!(late, "drain timeout reached; the remaining tasks are released");
        }
        if let Err(error) = engine.store.release(&engine.worker_id).await {
            tracing::warn!(%error, "could not release tasks; their leases expire instead");
        }
        // A run without a lease is not lost: its task is being created, and is released later.
        engine.lock_running().retain(|_, signals| {
            if signals.is_leased() {
                signals.lost.notify_one();
            }
            !signals.is_leased()
        });
    }

    /// Releases the runs that were promoted after [`Engine::drain`], in the same way. Call this
    /// method when no call is left that could be promoted. Does nothing if the engine is not
    /// drained.
    pub async fn drain_promoted(&self, timeout: Duration) {
        let is_late = *self.0.stopping.borrow() && !self.0.lock_running().is_empty();
        if is_late {
            self.drain(timeout).await;
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("worker_id", &self.0.worker_id)
            .field("running", &self.0.lock_running().len())
            .finish_non_exhaustive()
    }
}

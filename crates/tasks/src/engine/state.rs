//! [`EngineState`]: state that the scheduler, the drivers and the handles of one engine share.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::AtomicBool},
};

use tokio::sync::{Notify, Semaphore, watch};

use super::{
    changes::Listening,
    claims::Claims,
    config::EngineConfig,
    events::{EngineEvent, EngineObserver},
    idle_runs::IdleRuns,
    runner::TaskRunner,
    shares::Shares,
};
use crate::{
    Journal,
    capacity::{Claimant, Grant},
    store::{ChangeSource, Store, TaskId, WorkerId},
};

/// Epoch of a registered task that has no lease.
pub(super) const NO_EPOCH: u64 = 0;

/// Shared state of an engine.
pub(super) struct EngineState {
    pub(super) store: Arc<dyn Store>,
    pub(super) runner: Arc<dyn TaskRunner>,
    pub(super) observer: Option<Arc<dyn EngineObserver>>,
    pub(super) config: EngineConfig,
    pub(super) worker_id: WorkerId,
    running: Mutex<HashMap<TaskId, Signals>>,
    watched: Mutex<HashMap<TaskId, Weak<Notify>>>,
    pub(super) listening: Mutex<Vec<Weak<Listening>>>,
    /// Fires when a task may be due.
    pub(super) due: Notify,
    /// Fires when leases must be renewed earlier than usual.
    pub(super) renew: Arc<Notify>,
    /// Fires when a run has ended.
    pub(super) ended: Notify,
    pub(super) claims: Claims,
    /// Grants of tasks that the scheduler claims next.
    granted: Mutex<Vec<Grant>>,
    /// Number of running tasks per caller.
    pub(super) shares: Shares,
    /// Permits for running tasks.
    pub(super) slots: Arc<Semaphore>,
    /// Runs that wait for input and cannot be parked.
    pub(super) idle_runs: IdleRuns,
    /// Whether more tasks could be claimed if a slot were free.
    pub(super) is_full: AtomicBool,
    pub(super) stopping: watch::Sender<bool>,
}

/// Signals to the driver of a task.
#[derive(Clone)]
pub(super) struct Signals {
    /// Fires when the task's row has changed.
    pub(super) changed: Arc<Notify>,
    /// Fires when the lease is lost.
    pub(super) lost: Arc<Notify>,
    pub(super) epoch: u64,
    /// The run, once it has started.
    pub(super) run: Option<Running>,
}

/// A run, for readers of its segments.
#[derive(Clone)]
pub(super) struct Running {
    pub(super) principal: Arc<str>,
    pub(super) journal: Arc<Journal>,
    /// Whether the run occupies a slot. A promoted call does not.
    pub(super) has_slot: bool,
}

impl Signals {
    /// Creates the signals of a task without a lease.
    pub(super) fn new() -> Self {
        Self { changed: Arc::default(), lost: Arc::default(), epoch: NO_EPOCH, run: None }
    }

    /// Returns whether this worker has a lease on the task.
    pub(super) fn is_leased(&self) -> bool {
        self.epoch != NO_EPOCH
    }
}

impl EngineState {
    pub(super) fn new(
        store: Arc<dyn Store>,
        runner: Arc<dyn TaskRunner>,
        observer: Option<Arc<dyn EngineObserver>>,
        worker_id: WorkerId,
        config: EngineConfig,
    ) -> Self {
        Self {
            store,
            runner,
            observer,
            worker_id,
            running: Mutex::default(),
            watched: Mutex::default(),
            listening: Mutex::default(),
            due: Notify::new(),
            renew: Arc::default(),
            ended: Notify::new(),
            claims: Claims::default(),
            granted: Mutex::default(),
            shares: Shares::default(),
            slots: Arc::new(Semaphore::new(config.max_running)),
            idle_runs: IdleRuns::default(),
            is_full: AtomicBool::new(false),
            stopping: watch::channel(false).0,
            config,
        }
    }

    /// Reports an event to the observer.
    pub(super) fn observe(&self, principal: &str, task: &TaskId, event: EngineEvent<'_>) {
        if let Some(observer) = &self.observer {
            observer.seen(principal, task, event);
        }
    }

    /// Forwards a change notification of the store.
    pub(super) fn changed(&self, task: &TaskId, source: ChangeSource) {
        match (self.lock_running().get(task), source) {
            // The driver wrote the change, and notifies readers when its journal has the write,
            // too.
            (Some(Signals { run: Some(_), .. }), ChangeSource::Worker) => return,
            (Some(_), ChangeSource::Worker) => {}
            (Some(signals), ChangeSource::Other) => signals.changed.notify_one(),
            (None, _) => self.due.notify_one(),
        }
        self.notify_readers(task);
    }

    /// Notifies the readers of a task that it may have changed.
    pub(super) fn notify_readers(&self, task: &TaskId) {
        if let Some(notify) = self.lock_watched().get(task).and_then(Weak::upgrade) {
            notify.notify_waiters();
        }
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner).clone();
        listening.iter().filter_map(Weak::upgrade).for_each(|listening| listening.tell(task));
    }

    pub(super) fn lock_running(&self) -> MutexGuard<'_, HashMap<TaskId, Signals>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_granted(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.granted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock_watched(&self) -> MutexGuard<'_, HashMap<TaskId, Weak<Notify>>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claimant for EngineState {
    fn take_grant(&self, grant: &dyn Fn() -> Grant) -> bool {
        if *self.stopping.borrow() {
            return false;
        }
        self.lock_granted().push(grant());
        self.due.notify_one();
        true
    }
}

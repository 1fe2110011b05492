//! The places for running tasks in this process, and the registry of those that run.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::OwnedSemaphorePermit;

use super::state::{EngineState, Running, Signals};
use crate::store::TaskId;

/// The registration of a task that runs here, or will run here once it is created.
pub(super) struct RunRegistration {
    engine: Arc<EngineState>,
    task: TaskId,
    signals: Signals,
}

impl RunRegistration {
    /// Notes that this worker has a lease on the task from now on.
    pub(super) fn set_leased(&self, epoch: u64, run: Option<Running>) -> Signals {
        let leased = Signals { epoch, run, ..self.signals.clone() };
        self.engine.lock_running().insert(self.task.clone(), leased.clone());
        leased
    }
}

impl Drop for RunRegistration {
    fn drop(&mut self) {
        let mut running = self.engine.lock_running();
        // If the task was claimed again meanwhile, the entry belongs to that claim.
        let is_ours = |now: &Signals| Arc::ptr_eq(&now.changed, &self.signals.changed);
        if running.get(&self.task).is_some_and(is_ours) {
            running.remove(&self.task);
        }
        drop(running);
        self.engine.ended.notify_waiters();
    }
}

/// One running task of a caller, counted in its share.
pub(super) struct Share {
    engine: Arc<EngineState>,
    caller: String,
}

impl Drop for Share {
    fn drop(&mut self) {
        if self.engine.shares.count_out(&self.caller) {
            self.engine.due.notify_one();
        }
    }
}

/// The place of a running task.
pub(super) struct Slot {
    engine: Arc<EngineState>,
    permit: Option<OwnedSemaphorePermit>,
    share: Option<Share>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.permit = None;
        self.share = None;
        if self.engine.is_full.swap(false, Ordering::AcqRel) {
            self.engine.due.notify_one();
        }
    }
}

impl EngineState {
    /// Registers a task, even before it is created, so that no change of it is missed.
    pub(super) fn register(self: &Arc<Self>, task: &TaskId) -> RunRegistration {
        let signals = Signals::new();
        self.lock_running().insert(task.clone(), signals.clone());
        RunRegistration { engine: Arc::clone(self), task: task.clone(), signals }
    }

    /// Returns a place for one more task of a caller; `None` if all are taken, the caller is at its
    /// limit, or the engine stops.
    pub(super) fn slot(self: &Arc<Self>, caller: &str) -> Option<Slot> {
        let permit = Arc::clone(&self.slots).try_acquire_owned().ok();
        let permit = permit.filter(|_| !*self.stopping.borrow())?;
        let is_counted = self.shares.count_in(caller, self.config.per_caller());
        is_counted.then(|| self.slot_with(permit, self.counted(caller)))
    }

    pub(super) fn slot_with(self: &Arc<Self>, permit: OwnedSemaphorePermit, share: Share) -> Slot {
        Slot { engine: Arc::clone(self), permit: Some(permit), share: Some(share) }
    }

    /// Counts a running task of a caller, without a limit.
    pub(super) fn share(self: &Arc<Self>, caller: &str) -> Share {
        self.shares.count_in(caller, usize::MAX);
        self.counted(caller)
    }

    fn counted(self: &Arc<Self>, caller: &str) -> Share {
        Share { engine: Arc::clone(self), caller: caller.to_owned() }
    }

    /// Returns whether a place is free. If not, the scheduler is notified when one is.
    pub(super) fn has_free_slot(&self) -> bool {
        // Set before the places are counted, so that no run ends unnoticed in between.
        self.is_full.swap(true, Ordering::AcqRel);
        let is_free = self.slots.available_permits() > 0;
        if is_free {
            self.is_full.store(false, Ordering::Release);
        }
        is_free
    }
}

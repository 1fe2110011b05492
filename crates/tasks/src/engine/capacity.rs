//! Slots for running tasks in this process, and the registry of running tasks.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::OwnedSemaphorePermit;

use super::state::{EngineState, Running, Signals};
use crate::store::TaskId;

/// Registration of a task that runs in this process, or that will run once it is created.
pub(super) struct RunRegistration {
    engine: Arc<EngineState>,
    task: TaskId,
    signals: Signals,
}

impl RunRegistration {
    /// Records that this worker has a lease on the task.
    pub(super) fn set_leased(&self, epoch: u64, run: Option<Running>) -> Signals {
        let leased = Signals { epoch, run, ..self.signals.clone() };
        self.engine.lock_running().insert(self.task.clone(), leased.clone());
        leased
    }
}

impl Drop for RunRegistration {
    fn drop(&mut self) {
        let mut running = self.engine.lock_running();
        // If the task was claimed again in the meantime, the entry belongs to the new claim.
        let is_ours = |now: &Signals| Arc::ptr_eq(&now.changed, &self.signals.changed);
        if running.get(&self.task).is_some_and(is_ours) {
            running.remove(&self.task);
        }
        drop(running);
        self.engine.ended.notify_waiters();
    }
}

/// One running task of a caller, counted in the caller's share.
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

/// The slot of a running task. Dropping it lets the scheduler claim another task.
pub(super) struct Slot {
    engine: Arc<EngineState>,
    permit: Option<OwnedSemaphorePermit>,
    share: Option<Share>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        match self.permit.take() {
            Some(permit) if self.engine.idle_runs.take_owed() => permit.forget(),
            permit => drop(permit),
        }
        self.share = None;
        if self.engine.is_full.swap(false, Ordering::AcqRel) {
            self.engine.due.notify_one();
        }
    }
}

impl EngineState {
    /// Registers a task, even before it is created, so that no change of the task is missed.
    pub(super) fn register(self: &Arc<Self>, task: &TaskId) -> RunRegistration {
        let signals = Signals::new();
        self.lock_running().insert(task.clone(), signals.clone());
        RunRegistration { engine: Arc::clone(self), task: task.clone(), signals }
    }

    /// Returns a slot for one more task of a caller. Returns `None` if no slot is free, the caller
    /// is at its limit, or the engine stops.
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

    /// Returns whether a slot is free. If not, the end of a run notifies the scheduler.
    pub(super) fn has_free_slot(&self) -> bool {
        // Set before the slots are counted, so that no run ends unnoticed in between.
        self.is_full.swap(true, Ordering::AcqRel);
        let is_free = self.slots.available_permits() > 0;
        if is_free {
            self.is_full.store(false, Ordering::Release);
        }
        is_free
    }
}

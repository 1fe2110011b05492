//! Which tasks are run here, and how many more can be.

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::OwnedSemaphorePermit;

use super::{Inner, Running, Signals};
use crate::store::TaskId;

/// The epoch of a task that is not held yet.
pub(super) const NOT_HELD: u64 = 0;

impl Signals {
    /// Whether the task is this worker's, as far as it knows.
    pub(super) fn is_held(&self) -> bool {
        self.epoch != NOT_HELD
    }
}

/// A task that is run here, or will be once it is made.
pub(super) struct Expected {
    inner: Arc<Inner>,
    task: TaskId,
    signals: Signals,
}

impl Expected {
    /// The task is this worker's from now on.
    pub(super) fn is_held(&self, epoch: u64, run: Option<Running>) -> Signals {
        let held = Signals { epoch, run, ..self.signals.clone() };
        self.inner.lock_running().insert(self.task.clone(), held.clone());
        held
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        let mut running = self.inner.lock_running();
        // It may have been claimed again meanwhile: then it is another one's.
        let is_ours = |now: &Signals| Arc::ptr_eq(&now.changed, &self.signals.changed);
        if running.get(&self.task).is_some_and(is_ours) {
            running.remove(&self.task);
        }
        drop(running);
        self.inner.ended.notify_waiters();
    }
}

/// Room for a task.
pub(super) struct Slot {
    inner: Arc<Inner>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.permit = None;
        if self.inner.is_full.swap(false, Ordering::AcqRel) {
            self.inner.due.notify_one();
        }
    }
}

impl Inner {
    /// Hears of a task from now on, even if it is not made yet, so that nothing that is done to it
    /// is missed.
    pub(super) fn expect(self: &Arc<Self>, task: &TaskId) -> Expected {
        let signals = Signals::of(NOT_HELD);
        self.lock_running().insert(task.clone(), signals.clone());
        Expected { inner: Arc::clone(self), task: task.clone(), signals }
    }

    /// Room to run one more task, if there is some and it is to be used.
    pub(super) fn slot(self: &Arc<Self>) -> Option<Slot> {
        let permit = Arc::clone(&self.slots).try_acquire_owned().ok();
        permit.filter(|_| !*self.stopping.borrow()).map(|permit| self.slot_of(permit))
    }

    pub(super) fn slot_of(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Slot {
        Slot { inner: Arc::clone(self), permit: Some(permit) }
    }

    /// Whether there is room to run more. If not, whoever claims is told when there is.
    pub(super) fn has_room(&self) -> bool {
        // Said before it is looked at, so that no run ends unheard in between.
        self.is_full.swap(true, Ordering::AcqRel);
        let has_room = self.slots.available_permits() > 0;
        if has_room {
            self.is_full.store(false, Ordering::Release);
        }
        has_room
    }
}

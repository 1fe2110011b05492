//! Which tasks are run here, and how many more can be.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

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

/// How many tasks of each caller run here.
#[derive(Default)]
pub(super) struct Shares {
    running: Mutex<HashMap<String, usize>>,
    /// A caller is at its limit, and may have more that is due.
    some_full: AtomicBool,
}

impl Shares {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many of each caller run.
    pub(super) fn running(&self) -> HashMap<String, usize> {
        self.lock().clone()
    }

    /// The callers that run so many. If there are any, whoever claims is told when one of them runs
    /// less.
    pub(super) fn full(&self, max: usize) -> Vec<String> {
        // Said before it is looked at, so that no run ends unheard in between.
        self.some_full.store(true, Ordering::SeqCst);
        let running = self.lock();
        let full = running.iter().filter(|(_, running)| **running >= max);
        let full: Vec<_> = full.map(|(caller, _)| caller.clone()).collect();
        drop(running);
        if full.is_empty() {
            self.some_full.store(false, Ordering::SeqCst);
        }
        full
    }

    /// Counts one more of a caller in, if it may have one more.
    fn count_in(&self, caller: &str, max: usize) -> bool {
        let mut running = self.lock();
        match running.get_mut(caller) {
            Some(count) if *count >= max => return false,
            Some(count) => *count += 1,
            None => drop(running.insert(caller.to_owned(), 1)),
        }
        true
    }

    fn count_out(&self, caller: &str) {
        let mut running = self.lock();
        if let Some(count) = running.get_mut(caller) {
            *count -= 1;
            if *count == 0 {
                running.remove(caller);
            }
        }
    }
}

/// One of the tasks of a caller that run here.
pub(super) struct Share {
    inner: Arc<Inner>,
    caller: String,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.inner.shares.count_out(&self.caller);
        if self.inner.shares.some_full.swap(false, Ordering::SeqCst) {
            self.inner.due.notify_one();
        }
    }
}

/// Room for a task.
pub(super) struct Slot {
    inner: Arc<Inner>,
    permit: Option<OwnedSemaphorePermit>,
    share: Option<Share>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.permit = None;
        self.share = None;
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

    /// Room to run one more task of a caller, if there is some and it is to be used.
    pub(super) fn slot(self: &Arc<Self>, caller: &str) -> Option<Slot> {
        let permit = Arc::clone(&self.slots).try_acquire_owned().ok();
        let permit = permit.filter(|_| !*self.stopping.borrow())?;
        let has_room = self.shares.count_in(caller, self.config.per_caller());
        has_room.then(|| self.slot_of(permit, self.counted(caller)))
    }

    pub(super) fn slot_of(self: &Arc<Self>, permit: OwnedSemaphorePermit, share: Share) -> Slot {
        Slot { inner: Arc::clone(self), permit: Some(permit), share: Some(share) }
    }

    /// Counts a task of a caller that runs, however many there are.
    pub(super) fn share(self: &Arc<Self>, caller: &str) -> Share {
        self.shares.count_in(caller, usize::MAX);
        self.counted(caller)
    }

    fn counted(self: &Arc<Self>, caller: &str) -> Share {
        Share { inner: Arc::clone(self), caller: caller.to_owned() }
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

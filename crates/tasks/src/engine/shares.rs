//! Number of running tasks per caller in this process.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

/// Number of running tasks per caller.
#[derive(Default)]
pub(super) struct Shares {
    running: Mutex<HashMap<String, usize>>,
    /// Whether a caller was at its limit and may have more due tasks.
    some_full: AtomicBool,
}

impl Shares {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of running tasks per caller.
    pub(super) fn running(&self) -> HashMap<String, usize> {
        self.lock().clone()
    }

    /// Returns the callers that run `max` tasks or more. If there are any, the end of one of their
    /// runs notifies the scheduler.
    pub(super) fn full(&self, max: usize) -> Vec<String> {
        // Set before the map is read, so that no run ends unnoticed in between.
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

    /// Counts one more task of a caller. Returns `false` if the caller already runs `max` tasks.
    pub(super) fn count_in(&self, caller: &str, max: usize) -> bool {
        let mut running = self.lock();
        match running.get_mut(caller) {
            Some(count) if *count >= max => return false,
            Some(count) => *count += 1,
            None => drop(running.insert(caller.to_owned(), 1)),
        }
        true
    }

    /// Counts one task of a caller less. Returns whether a caller was at its limit.
    pub(super) fn count_out(&self, caller: &str) -> bool {
        let mut running = self.lock();
        if let Some(count) = running.get_mut(caller) {
            *count -= 1;
            if *count == 0 {
                running.remove(caller);
            }
        }
        drop(running);
        self.some_full.swap(false, Ordering::SeqCst)
    }
}

//! Calls that have lost their process, and how often in a row.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Maximum number of calls that are remembered.
const MAX_CALLS: usize = 4_096;

/// Losses in a row after which a call is quarantined, unless its policy says otherwise.
pub(crate) const MAX_LOSSES: u32 = 5;

/// Losses after which a call has a process to itself.
pub(crate) const ALONE_AFTER: u32 = 2;

/// Losses of calls without a new journal entry between them. A task that returns to the store keeps
/// its losses.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    calls: Mutex<HashMap<String, Lost>>,
}

#[derive(Clone, Copy, Debug)]
struct Lost {
    losses: u32,
    /// Number of recorded steps at the last loss.
    recorded: usize,
}

impl Losses {
    /// Counts a loss of a call with this number of recorded steps. Returns its losses in a row.
    pub(crate) fn lost(&self, call: &str, recorded: usize) -> u32 {
        let mut calls = self.lock();
        if calls.len() >= MAX_CALLS && !calls.contains_key(call) {
            // A forgotten call starts to count again, which delays its quarantine.
            let any = calls.keys().next().cloned();
            any.map(|call| calls.remove(&call));
        }
        let entry = calls.entry(call.to_owned()).or_insert(Lost { losses: 0, recorded });
        if recorded > entry.recorded {
            *entry = Lost { losses: 0, recorded };
        }
        entry.losses += 1;
        entry.losses
    }

    /// Returns the losses in a row of a call with this number of recorded steps.
    pub(crate) fn of(&self, call: &str, recorded: usize) -> u32 {
        let calls = self.lock();
        calls.get(call).filter(|lost| recorded <= lost.recorded).map_or(0, |lost| lost.losses)
    }

    /// Forgets a call that has ended.
    pub(crate) fn forget(&self, call: &str) {
        self.lock().remove(call);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Lost>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Losses, MAX_CALLS};

    #[test]
    fn recorded_step_resets_losses() {
        let losses = Losses::default();
        assert_eq!(losses.of("a", 0), 0);
        assert_eq!([losses.lost("a", 1), losses.lost("a", 1)], [1, 2]);
        assert_eq!((losses.of("a", 1), losses.of("a", 2)), (2, 0));
        assert_eq!([losses.lost("a", 2), losses.lost("a", 2)], [1, 2]);
        losses.forget("a");
        assert_eq!(losses.of("a", 2), 0);
    }

    #[test]
    fn remembered_calls_are_bounded() {
        let losses = Losses::default();
        for number in 0..2 * MAX_CALLS {
            losses.lost(&number.to_string(), 0);
        }
        assert_eq!(losses.lock().len(), MAX_CALLS);
    }
}

//! Steps and timers of a run: used keys, active steps, running timers.

use std::collections::{BTreeMap, HashSet};

use crate::error::JournalError;

/// Steps and timers of a run.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Keys that this run has used: of active steps, of input requests, and of entries that it has
    /// read.
    used: HashSet<String>,
    /// Number of step bodies that are being executed.
    active: usize,
    /// End times of the timers that the run waits for.
    timers: BTreeMap<String, u64>,
}

impl Steps {
    /// Marks a key as used by this run.
    pub(super) fn take_key(&mut self, key: &str) -> Result<(), JournalError> {
        match self.used.insert(key.to_owned()) {
            true => Ok(()),
            false => Err(JournalError::DuplicateKey(key.to_owned())),
        }
    }

    /// Allows another step to use a key.
    pub(super) fn free_key(&mut self, key: &str) {
        self.used.remove(key);
    }

    /// Returns whether this run has used a key.
    pub(super) fn has_used(&self, key: &str) -> bool {
        self.used.contains(key)
    }

    /// Counts a body that starts.
    pub(super) fn start(&mut self) {
        self.active += 1;
    }

    /// Counts a body that ends. After a restart the count is zero, so late bodies of the old run
    /// are ignored.
    pub(super) fn end(&mut self) {
        self.active = self.active.saturating_sub(1);
    }

    pub(super) fn any_active(&self) -> bool {
        self.active > 0
    }

    pub(super) fn add_timer(&mut self, key: &str, due: u64) {
        self.timers.insert(key.to_owned(), due);
    }

    pub(super) fn remove_timer(&mut self, key: &str) {
        self.timers.remove(key);
    }

    pub(super) fn any_timer(&self) -> bool {
        !self.timers.is_empty()
    }

    /// Returns the end times of the timers.
    pub(super) fn dues(&self) -> impl Iterator<Item = u64> {
        self.timers.values().copied()
    }

    /// Clears all keys, steps and timers for the next run.
    pub(super) fn restart(&mut self) {
        self.used.clear();
        self.active = 0;
        self.timers.clear();
    }
}

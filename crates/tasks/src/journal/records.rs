//! The recorded steps and input responses of a journal.

use outlive_wire::RawJson;

use super::state::Journal;
use crate::{current_run::RunId, error::JournalError, key::Key, record::JournalEntry};

impl Journal {
    /// Returns the recorded steps with their entries, in the order of their keys. Does not mark the
    /// keys as used.
    pub fn recorded_steps(&self) -> Vec<(Key, JournalEntry)> {
        let state = self.lock();
        // Entries of the server have keys that start with `#`, which is escaped in an author's key.
        let keys = state.keys().filter(|key| !key.starts_with('#'));
        let steps = keys.filter_map(|key| match state.entry(key)? {
            entry
            @ (JournalEntry::Value(_) | JournalEntry::Secret(_) | JournalEntry::Failed(_)) => {
                Some((Key::from_joined(key), entry.clone()))
            }
            _ => None,
        });
        steps.collect()
    }

    /// Returns the recorded input responses with their keys, in the order of the keys.
    pub fn recorded_responses(&self) -> Vec<(Key, RawJson)> {
        let state = self.lock();
        let keys = state.keys().filter(|key| !key.starts_with('#'));
        let responses = keys.filter_map(|key| match state.entry(key)? {
            JournalEntry::Answer(raw) => Some((Key::from_joined(key), raw.clone())),
            _ => None,
        });
        responses.collect()
    }

    /// Marks a key as used by the run, without an operation. Returns whether it has an entry.
    ///
    /// # Errors
    ///
    /// Returns an error if the run is not being polled, or if the key is already used.
    pub fn mark_used(&self, run: RunId, key: &str) -> Result<bool, JournalError> {
        let mut state = self.enter(run, key)?;
        let is_recorded = state.entry(key).is_some();
        if is_recorded {
            state.steps.take_key(key)?;
        }
        Ok(is_recorded)
    }
}

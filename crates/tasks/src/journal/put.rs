//! Entries that are replaced while the run continues, such as the position in a stream.

use std::task::Waker;

use outlive_wire::RawJson;

use super::state::Journal;
use crate::{error::JournalError, record::JournalEntry};

impl Journal {
    /// Records a value in place of the one under `key`, and marks the key as used. The next write
    /// contains only the newest value.
    ///
    /// # Errors
    ///
    /// Returns an error if the run has ended, the journal rejects secrets, the key belongs to another
    /// kind of entry, or the journal is full.
    pub fn put(&self, key: &str, value: RawJson, secret: bool) -> Result<(), JournalError> {
        let limits = self.limits();
        if secret && limits.leaves {
            return Err(JournalError::SecretNotAllowed(key.to_owned()));
        }
        let mut state = self.lock();
        if state.is_closing() {
            return Err(JournalError::RunEnded(key.to_owned()));
        }
        match state.entry(key) {
            None | Some(JournalEntry::Value(_) | JournalEntry::Secret(_)) => {}
            Some(_) => return Err(JournalError::KindMismatch(key.to_owned())),
        }
        state.takes_more()?;
        // Already used if this run has put a value before.
        let _ = state.steps.take_key(key);
        if let Some(pending) = &mut state.pending {
            pending.remove_entry(key);
        }
        state.forget(key);
        let entry = match secret {
            true => JournalEntry::Secret(value),
            false => JournalEntry::Value(value),
        };
        state.record(key, entry, limits)?;
        state.secrets |= secret;
        let writer = state.pending.as_ref().and_then(|pending| pending.writer());
        drop(state);
        writer.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Lets the runs leave recorded entries unused, because the entries that they need depend on
    /// another system.
    pub fn skip_entries(&self) {
        self.lock().skips_entries = true;
    }

    /// Returns whether the journal has no entries.
    pub fn is_empty(&self) -> bool {
        self.lock().keys().next().is_none()
    }

    /// Returns whether the run is being dropped before its end, and another one can continue.
    pub fn is_closed(&self) -> bool {
        self.lock().is_closing()
    }
}

#[cfg(test)]
mod tests {
    use outlive_wire::InputRequest;
    use serde_json::value::to_raw_value;

    use crate::{
        Journal, JournalEntry, JournalError, JournalLimits, poll_as,
        store::{Audience, Changes},
    };

    const LIMITS: JournalLimits = JournalLimits {
        bytes: 1_000,
        open_inputs: 10,
        leaves: false,
        segments: 10,
        segment_bytes: 100,
    };

    fn put(journal: &Journal, value: u32) -> Result<(), JournalError> {
        journal.put("at", to_raw_value(&value).unwrap(), true)
    }

    fn written(changes: &Changes) -> Vec<String> {
        let entries = changes.entries.iter().map(|recorded| match &recorded.entry {
            JournalEntry::Secret(raw) => raw.get().to_owned(),
            other => panic!("{other:?}"),
        });
        entries.collect()
    }

    #[test]
    fn value_put_twice_is_written_once_and_replaces_the_stored_one() {
        let journal = Journal::new(LIMITS);
        put(&journal, 0).unwrap();
        journal.begin_writing();
        for value in 1..=2 {
            put(&journal, value).unwrap();
        }
        let changes = journal.take_changes().unwrap();
        assert_eq!(written(&changes), ["2"]);
        assert!(changes.invalidated.iter().all(|key| key == "at"));
        // The write is in progress, so a newer value needs another one.
        put(&journal, 3).unwrap();
        journal.written();
        let changes = journal.take_changes().unwrap();
        assert_eq!(written(&changes), ["3"]);
        assert!(changes.invalidated.contains(&"at".to_owned()));
        assert!(journal.replay_mismatch().unused.is_empty());
        assert!(!journal.fits(usize::MAX), "a journal with a secret stays on the server");
    }

    #[test]
    fn put_is_rejected_for_other_kinds_secrets_that_leave_and_ended_runs() {
        let journal = Journal::new(LIMITS);
        let asked = || {
            journal.inputs().ask(1, "at", InputRequest::ListRoots, Audience::Client, Some((0, 1)))
        };
        poll_as(1, asked).unwrap();
        journal.inputs().resolve("at", Ok(to_raw_value(&1).unwrap())).unwrap();
        assert_eq!(put(&journal, 1), Err(JournalError::KindMismatch("at".to_owned())));
        let journal = Journal::new(JournalLimits { leaves: true, ..LIMITS });
        assert_eq!(put(&journal, 1), Err(JournalError::SecretNotAllowed("at".to_owned())));
        let journal = Journal::new(LIMITS);
        journal.close();
        assert!(journal.is_closed());
        assert_eq!(put(&journal, 1), Err(JournalError::RunEnded("at".to_owned())));
    }

    #[test]
    fn run_that_may_skip_entries_has_no_unused_ones() {
        let journal = Journal::new(LIMITS);
        assert!(journal.is_empty());
        put(&journal, 1).unwrap();
        let journal = Journal::from_snapshot(LIMITS, journal.snapshot());
        assert!(!journal.is_empty());
        assert_eq!(journal.replay_mismatch().unused, ["at"]);
        journal.skip_entries();
        assert!(journal.replay_mismatch().unused.is_empty());
    }
}

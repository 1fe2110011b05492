//! Steps and timers: what a run does once, and what it waits for.

use std::sync::Arc;

use super::{
    pending_writes::{PendingWrites, WriteTicket},
    state::{Journal, ONCE},
};
use crate::{current_run::RunId, error::JournalError, record::JournalEntry};

/// What [`Journal::begin`] found.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth thing")]
pub enum StepStart<'a> {
    /// It has been done; this came of it.
    Recorded(JournalEntry),
    /// It is to be done.
    New(Step<'a>),
    /// It has been begun before, and nobody knows how far it came.
    Ambiguous,
}

/// A step whose body is at work. Dropped without a record it gives its key back.
#[derive(Debug)]
pub struct Step<'a> {
    journal: &'a Journal,
    key: Arc<str>,
    done: bool,
}

/// That a run waits for a timer. Dropped, it does not any more.
#[derive(Debug)]
pub struct TimerGuard<'a> {
    journal: &'a Journal,
    key: String,
}

impl Journal {
    /// Begins a step. Its key is taken from now on.
    pub fn begin(&self, run: RunId, key: &str) -> Result<StepStart<'_>, JournalError> {
        let mut state = self.enter(run, key)?;
        state.take(key)?;
        if let Some(entry) = state.entry(key) {
            return match entry {
                JournalEntry::Value(_) | JournalEntry::Secret(_) | JournalEntry::Failed(_) => {
                    Ok(StepStart::Recorded(entry.clone()))
                }
                _ => Err(JournalError::KindMismatch(key.to_owned())),
            };
        }
        if let Err(full) = state.takes_more() {
            // What cannot be recorded is not done.
            state.give_back(key);
            return Err(full);
        }
        state.steps += 1;
        // Tried again, it emits its blocks again, from the first.
        state.segments.restart(key);
        Ok(StepStart::New(Step { journal: self, key: key.into(), done: false }))
    }

    /// Begins a step that must not be done twice. That it was begun is recorded before, and counts
    /// when the ticket is redeemed: [`Journal::poll_written`].
    pub fn begin_once(
        &self,
        run: RunId,
        key: &str,
    ) -> Result<(StepStart<'_>, WriteTicket), JournalError> {
        let mark = format!("{key}{ONCE}");
        let begun = self.begin(run, key)?;
        let mut state = self.lock();
        match (&begun, state.entry(&mark)) {
            (StepStart::New(_), Some(_)) => Ok((StepStart::Ambiguous, WriteTicket::NONE)),
            (StepStart::New(_), None) => {
                state.record(&mark, JournalEntry::Begun, self.bounds())?;
                let ticket =
                    state.unwritten.as_ref().map_or(WriteTicket::NONE, PendingWrites::ticket);
                drop(state);
                Ok((begun, ticket))
            }
            _ => {
                drop(state);
                Ok((begun, WriteTicket::NONE))
            }
        }
    }

    /// When a timer is over, in milliseconds since 1970: as it was recorded, or so long after now.
    pub fn timer(&self, run: RunId, key: &str, now: u64, span: u64) -> Result<u64, JournalError> {
        let mut state = self.enter(run, key)?;
        state.take(key)?;
        match state.entry(key) {
            Some(JournalEntry::Due(due)) => Ok(*due),
            Some(_) => Err(JournalError::KindMismatch(key.to_owned())),
            None => {
                let due = now.saturating_add(span);
                state.record(key, JournalEntry::Due(due), self.bounds())?;
                Ok(due)
            }
        }
    }

    /// The run waits for a timer, until what is returned is dropped.
    pub fn wait_for(&self, key: &str, due: u64) -> TimerGuard<'_> {
        self.lock().timers.insert(key.to_owned(), due);
        TimerGuard { journal: self, key: key.to_owned() }
    }
}

impl Step<'_> {
    /// The body is tried again: what it emits, it emits from the first block on.
    pub fn restart(&self) {
        self.journal.lock().segments.restart(&self.key);
    }

    /// The key, to mark what is polled as this step.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// Records what came of the step, and returns what is recorded: the first record stays. With a
    /// store it counts when its ticket is redeemed: [`Journal::poll_written`].
    pub fn record(
        mut self,
        entry: JournalEntry,
        secret: bool,
    ) -> Result<(JournalEntry, WriteTicket), JournalError> {
        let bounds = self.journal.bounds();
        if secret && bounds.leaves {
            return Err(JournalError::SecretNotAllowed(self.key.as_ref().to_owned()));
        }
        let entry = match entry {
            JournalEntry::Value(raw) if secret => JournalEntry::Secret(raw),
            entry => entry,
        };
        let mut state = self.journal.lock();
        if state.is_closing() {
            return Err(JournalError::RunEnded(self.key.as_ref().to_owned()));
        }
        let stored = state.record(&self.key, entry, bounds)?.clone();
        state.secrets |= secret;
        let ticket = state.unwritten.as_ref().map_or(WriteTicket::NONE, PendingWrites::ticket);
        drop(state);
        self.done = true;
        Ok((stored, ticket))
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        let mut state = self.journal.lock();
        state.steps = state.steps.saturating_sub(1);
        if !self.done {
            state.give_back(&self.key);
        }
    }
}

impl Drop for TimerGuard<'_> {
    fn drop(&mut self) {
        self.journal.lock().timers.remove(&self.key);
    }
}

//! [`Step`] and [`TimerGuard`]: what a run executes once, and when it waits until a time.

use std::sync::Arc;

use super::{
    pending_writes::WriteTicket,
    state::{Journal, ONCE},
};
use crate::{current_run::RunId, error::JournalError, record::JournalEntry};

/// Result of [`Journal::begin`].
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "there is no fourth thing")]
pub enum StepStart<'a> {
    /// The step has ended; this is its record.
    Recorded(JournalEntry),
    /// The step is to run.
    New(Step<'a>),
    /// The step was started before, and may or may not have had its effect.
    Ambiguous,
}

/// A step whose body is at work. Dropping it without a record frees its key.
#[derive(Debug)]
pub struct Step<'a> {
    journal: &'a Journal,
    key: Arc<str>,
    done: bool,
}

/// A timer that a run waits for, until this is dropped.
#[derive(Debug)]
pub struct TimerGuard<'a> {
    journal: &'a Journal,
    key: String,
    due: u64,
}

impl Journal {
    /// Starts a step. Its key is used from now on.
    ///
    /// # Errors
    ///
    /// When the run is not being polled, the key is used, or nothing more can be recorded.
    pub fn begin(&self, run: RunId, key: &str) -> Result<StepStart<'_>, JournalError> {
        let mut state = self.enter(run, key)?;
        state.steps.take_key(key)?;
        if let Some(entry) = state.entry(key) {
            return match entry {
                JournalEntry::Value(_) | JournalEntry::Secret(_) | JournalEntry::Failed(_) => {
                    Ok(StepStart::Recorded(entry.clone()))
                }
                _ => Err(JournalError::KindMismatch(key.to_owned())),
            };
        }
        if let Err(full) = state.takes_more() {
            // A step that cannot be recorded does not run.
            state.steps.free_key(key);
            return Err(full);
        }
        state.steps.start();
        // A retried body emits its segments again, from the first.
        state.segments.restart(key);
        Ok(StepStart::New(Step { journal: self, key: key.into(), done: false }))
    }

    /// Starts a step that must not run twice. Its start is recorded first, and is durable when the ticket is
    /// written: [`Journal::poll_written`].
    ///
    /// # Errors
    ///
    /// As [`Journal::begin`].
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
                state.record(&mark, JournalEntry::Begun, self.limits())?;
                let ticket = state.ticket();
                drop(state);
                Ok((begun, ticket))
            }
            _ => {
                drop(state);
                Ok((begun, WriteTicket::NONE))
            }
        }
    }

    /// Starts a timer, which ends when it did in an earlier run, or `span` milliseconds after `now`. The run
    /// waits for it until the guard is dropped.
    ///
    /// # Errors
    ///
    /// When the run is not being polled, the key is used, or the journal is full.
    pub fn timer(
        &self,
        run: RunId,
        key: &str,
        now: u64,
        span: u64,
    ) -> Result<TimerGuard<'_>, JournalError> {
        let mut state = self.enter(run, key)?;
        state.steps.take_key(key)?;
        let due = match state.entry(key) {
            Some(JournalEntry::Due(due)) => *due,
            Some(_) => return Err(JournalError::KindMismatch(key.to_owned())),
            None => {
                let due = now.saturating_add(span);
                state.record(key, JournalEntry::Due(due), self.limits())?;
                due
            }
        };
        state.steps.add_timer(key, due);
        Ok(TimerGuard { journal: self, key: key.to_owned(), due })
    }
}

impl TimerGuard<'_> {
    /// Returns when the timer ends, in milliseconds since 1970.
    pub fn due(&self) -> u64 {
        self.due
    }
}

impl Step<'_> {
    /// Retries the body: it emits its segments again, from the first.
    pub fn restart(&self) {
        self.journal.lock().segments.restart(&self.key);
    }

    /// Returns the key.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// Records the result of the step. Returns the recorded one: an existing record stays. It is durable
    /// when the ticket is written: [`Journal::poll_written`].
    ///
    /// # Errors
    ///
    /// When the run has ended, a secret is not allowed here, or the journal is full.
    pub fn record(
        mut self,
        entry: JournalEntry,
        secret: bool,
    ) -> Result<(JournalEntry, WriteTicket), JournalError> {
        let limits = self.journal.limits();
        if secret && limits.leaves {
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
        let stored = state.record(&self.key, entry, limits)?.clone();
        state.secrets |= secret;
        let ticket = state.ticket();
        drop(state);
        self.done = true;
        Ok((stored, ticket))
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        let mut state = self.journal.lock();
        state.steps.end();
        if !self.done {
            state.steps.free_key(&self.key);
        }
    }
}

impl Drop for TimerGuard<'_> {
    fn drop(&mut self) {
        self.journal.lock().steps.remove_timer(&self.key);
    }
}

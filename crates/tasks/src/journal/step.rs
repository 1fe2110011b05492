//! [`Step`] and [`TimerGuard`]: recorded operations and timers of a run.

use std::sync::Arc;

use tokio::time::Instant;

use super::{
    pending_writes::WriteTicket,
    state::{Journal, ONCE},
};
use crate::{current_run::RunId, error::JournalError, record::JournalEntry};

/// Result of [`Journal::begin`].
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "a step is recorded, new or ambiguous")]
pub enum StepStart<'a> {
    /// The step has ended with this record.
    Recorded(JournalEntry),
    /// The step must run.
    New(Step<'a>),
    /// The step was started by an earlier run. Whether it took effect is unknown.
    Ambiguous,
}

/// A step whose body is being executed. Dropping the value without a record frees the key.
#[derive(Debug)]
pub struct Step<'a> {
    journal: &'a Journal,
    key: Arc<str>,
    /// When the body started, if durations are recorded.
    started: Option<Instant>,
    done: bool,
}

/// A timer that the run waits for. Dropping the guard ends the wait.
#[derive(Debug)]
pub struct TimerGuard<'a> {
    journal: &'a Journal,
    key: String,
    due: u64,
}

impl Journal {
    /// Starts a step and marks its key as used.
    ///
    /// # Errors
    ///
    /// Returns an error if the run is not being polled, the key is already used, or the store has
    /// rejected a write.
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
            // A step whose result cannot be recorded must not run.
            state.steps.free_key(key);
            return Err(full);
        }
        state.steps.start();
        // A retried body emits its segments again, from the first one.
        state.segments.restart(key);
        let started = state.timed.then(Instant::now);
        Ok(StepStart::New(Step { journal: self, key: key.into(), started, done: false }))
    }

    /// Starts a step that must not execute twice. Records the start first; the start is durable
    /// once the ticket is written: [`Journal::poll_written`].
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Journal::begin`].
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

    /// Starts a timer that ends `span` milliseconds after `now`, or at the time that an earlier run
    /// recorded. The run waits for the timer until the guard is dropped.
    ///
    /// # Errors
    ///
    /// Returns an error if the run is not being polled, the key is already used, or the journal is
    /// full.
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
    /// Prepares a retry of the body, which emits its segments again from the first one.
    pub fn restart(&self) {
        self.journal.lock().segments.restart(&self.key);
    }

    /// Returns the key.
    pub fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// Records the result of the step. Returns the recorded entry, which is the existing one if
    /// there is one. The record is durable once the ticket is written: [`Journal::poll_written`].
    ///
    /// # Errors
    ///
    /// Returns an error if the run has ended, the journal rejects secrets, or the journal is full.
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
        let duration = self.started.map(|started| started.elapsed());
        let stored = state.record_step(&self.key, entry, duration, limits)?.clone();
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

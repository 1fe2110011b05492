//! Recorded steps, replays within a run, and journals that the handler cannot read.
//!
//! A handler that runs its work elsewhere, such as in another process, needs them: it sends the
//! recorded steps to that process, and starts the work again if the process is lost.

use std::{fmt, future::poll_fn};

use outlive_tasks::{IntoKey, Journal, JournalEntry, Key};
use outlive_wire::RawJson;

use crate::server::{
    durable::{cleanup::Cleanup, context::Durable},
    durable_error::DurableError,
    error::{Error, Result},
    run::state::RunState,
};

/// A step that is recorded in the journal of a call; see [`Durable::records`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StepRecord {
    /// Key of the step, with all its scopes.
    pub key: Key,
    /// Recorded outcome.
    pub outcome: StepOutcome,
    /// Label of the handler revision that recorded the step, if it is another revision than the
    /// current one. The label is empty if that revision had none.
    pub revision: Option<String>,
}

/// Outcome of a recorded step.
#[derive(Clone)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The value.
    Value(RawJson),
    /// The value, which contains a secret.
    Secret(RawJson),
    /// The message of a permanent failure.
    Failed(String),
}

/// Reason why a run is dropped; see [`Durable::drop_reason`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// The task waits in the store, or another worker continues it.
    Parked,
    /// The call ended with input requests, and a later request continues it.
    Suspended,
    /// The call or its task was cancelled.
    Cancelled,
    /// Another worker has the lease of the task.
    LeaseLost,
}

impl Durable {
    /// Returns the recorded steps of all runs, in the order of their keys. The journal may contain
    /// secrets. Input responses and timers are not included: repeat them, and the journal resolves
    /// them at once.
    ///
    /// A step that the handler does not request again causes a warning in the log, unless
    /// [`Durable::mark_replayed`] is called for it.
    pub fn records(&self) -> Vec<StepRecord> {
        records(self.journal(), self.run())
    }

    /// Marks a recorded step as requested by this run, without reading it. Returns `false` if the step is
    /// not recorded.
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`] if the run has used the key, inside a step, or outside of the run.
    pub fn mark_replayed(&self, key: impl IntoKey) -> Result<bool> {
        let marked = self.journal().mark_used(self.run_id(), &self.full(key));
        Ok(marked.map_err(DurableError::from)?)
    }

    /// Drops `work` and prepares the journal for starting that work again in the same run, as if the
    /// handler started at its first line.
    ///
    /// `work` must contain every future of this context: steps, input requests, timers. Its input
    /// requests are not withdrawn, so the new work can request them again under the same keys.
    /// Completes when all recorded steps are committed.
    ///
    /// ```
    /// use std::{future::Future, pin::Pin};
    ///
    /// use outlive::server::{Durable, Result};
    ///
    /// type Work = Pin<Box<dyn Future<Output = Result<String>> + Send>>;
    ///
    /// fn start(cx: Durable) -> Work {
    ///     Box::pin(async move { cx.step("build", async || Ok("shop:1".to_owned())).await })
    /// }
    ///
    /// async fn build(cx: Durable) -> Result<String> {
    ///     let first = start(cx.clone());
    ///     // The process that builds is lost.
    ///     cx.replay(first).await?;
    ///     start(cx.clone()).await
    /// }
    /// # outlive::server::Tool::new("build", build);
    /// ```
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`] inside a step or outside of the run, or if the store rejects a
    /// recorded step.
    pub async fn replay<W>(&self, work: W) -> Result<()> {
        let journal = self.journal();
        journal.drop_work(self.run_id(), work).map_err(DurableError::from)?;
        let written = poll_fn(|task| journal.poll_written_all(task)).await;
        journal.rerun();
        Ok(written.map_err(DurableError::from)?)
    }

    /// Gives up a run whose journal the handler cannot read: the entry of `key` does not fit, for
    /// this reason.
    ///
    /// A task is quarantined, because the handler could otherwise repeat effects that took place, and
    /// the future never completes. For an inline call, it returns the error that the handler should
    /// return.
    pub async fn incompatible(&self, key: impl IntoKey, reason: impl Into<String>) -> Error {
        let key = self.full(key);
        self.give_up(DurableError::IncompatibleEntry { key, reason: reason.into() }.into()).await
    }

    /// Quarantines a task for this reason, until an operator retries it. The future then never
    /// completes. For an inline call, it returns the error that the handler should return.
    ///
    /// Use it for a call that would do harm if it ran again, such as one that keeps crashing other
    /// processes.
    pub async fn quarantine(&self, reason: impl Into<String>) -> Error {
        self.give_up(Error::new(reason)).await
    }

    /// Quarantines a task. Returns the error of an inline call.
    pub(crate) async fn give_up(&self, error: Error) -> Error {
        if !self.run().is_task() {
            return error;
        }
        self.run().quarantine(error.to_string());
        // The caller that polls the run sees the quarantine and drops the run.
        std::future::pending().await
    }

    /// Returns why the run is dropped. Use it in the destructor of a value that the handler holds;
    /// before that, the reason is not known.
    pub fn drop_reason(&self) -> DropReason {
        let run = self.run();
        let journal = run.used_journal();
        let is = |check: fn(&Journal) -> bool| journal.is_some_and(|journal| check(journal));
        match run.is_task() {
            true if is(Journal::has_lost_lease) => DropReason::LeaseLost,
            true if run.is_task_cancelled() => DropReason::Cancelled,
            true => DropReason::Parked,
            false if is(Journal::is_closed) => DropReason::Suspended,
            false => DropReason::Cancelled,
        }
    }
}

impl Cleanup {
    /// Returns the recorded steps of the task, as [`Durable::records`] does.
    pub fn records(&self) -> Vec<StepRecord> {
        records(self.journal(), self.run())
    }

    /// Returns the recorded input responses of the task as clients sent them, in the order of their
    /// keys.
    pub fn responses(&self) -> Vec<(Key, RawJson)> {
        self.journal().recorded_responses()
    }
}

fn records(journal: &Journal, run: &RunState) -> Vec<StepRecord> {
    let steps = journal.recorded_steps().into_iter();
    let record = |(key, entry): (Key, JournalEntry)| {
        let outcome = match entry {
            JournalEntry::Value(value) => StepOutcome::Value(value),
            JournalEntry::Secret(value) => StepOutcome::Secret(value),
            JournalEntry::Failed(failure) => StepOutcome::Failed(failure.message),
            _ => return None,
        };
        let revision = run.foreign_revision(key.as_str()).map(str::to_owned);
        Some(StepRecord { key, outcome, revision })
    };
    steps.filter_map(record).collect()
}

impl fmt::Debug for StepOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => f.debug_tuple("Value").field(value).finish(),
            Self::Secret(_) => f.write_str("Secret(…)"),
            Self::Failed(message) => f.debug_tuple("Failed").field(message).finish(),
        }
    }
}

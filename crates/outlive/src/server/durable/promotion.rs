//! Entries that change, and entries that the journal gets when a call becomes a task.

use std::{fmt, future::poll_fn, sync::Arc};

use outlive_tasks::{IntoKey, Journal};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::server::{
    durable::context::Durable, durable_error::DurableError, error::Result, run::state::RunState,
    secret::record,
};

impl Durable {
    /// Returns whether the call is a task.
    pub fn is_task(&self) -> bool {
        self.run().is_task()
    }

    /// Returns whether the call is not a task, but may become one while its handler runs.
    pub fn may_become_task(&self) -> bool {
        self.run().is_promotable()
    }

    /// Makes the call a task, if it may become one, and returns whether it is a task. The handler
    /// continues where it is.
    ///
    /// For work that another system has just declared to be slow. Other calls become tasks by their
    /// policy.
    pub async fn promote(&self) -> bool {
        poll_fn(|task| self.run().poll_task(task)).await
    }

    /// Returns whether the journal has entries of this run or an earlier one.
    pub fn has_records(&self) -> bool {
        self.run().used_journal().is_some_and(|journal| !journal.is_empty())
    }

    /// Returns whether the run is being dropped while its call continues: its task waits for another
    /// worker, or the next round continues the call. For destructors, which must then leave alone
    /// what the next run uses.
    pub fn is_detached(&self) -> bool {
        let run = self.run();
        !run.is_task_cancelled() && run.used_journal().is_some_and(|journal| journal.is_closed())
    }

    /// Lets this handler leave recorded entries unused without a warning, because the entries that it
    /// needs depend on another system, such as the state of a call there.
    pub fn skip_records(&self) {
        self.journal().skip_entries();
    }

    /// Records a value in place of the one under `key`, such as a position in a stream.
    /// [`Durable::get`] returns the newest. The store of a task gets it with the next write, so a
    /// crash may lose the last values.
    ///
    /// # Errors
    ///
    /// Returns a [`DurableError`], such as for a value with a secret in a call whose journal the
    /// client carries.
    pub fn put<T: Serialize>(&self, key: impl IntoKey, value: &T) -> Result<()> {
        put(self.journal(), &self.full(key), value)
    }

    /// Calls `record` immediately before the call becomes a task, until the guard is dropped. Its
    /// entries are in the journal with which the task is created. A run has one such guard at a time.
    ///
    /// Not called if the call is a task from its start.
    pub fn on_promotion(
        &self,
        record: impl Fn(&PromotionJournal<'_>) + Send + Sync + 'static,
    ) -> PromotionGuard {
        let scope = self.scope_text().to_owned();
        let hook = move |journal: &Journal| record(&PromotionJournal { journal, scope: &scope });
        self.run().set_promotion_hook(Some(Arc::new(hook)));
        PromotionGuard { run: self.shared_run() }
    }
}

/// The journal of a call that becomes a task; see [`Durable::on_promotion`].
pub struct PromotionJournal<'a> {
    journal: &'a Journal,
    scope: &'a str,
}

impl PromotionJournal<'_> {
    /// Records a value, as [`Durable::put`] does.
    ///
    /// # Errors
    ///
    /// Same as [`Durable::put`].
    pub fn put<T: Serialize>(&self, key: impl IntoKey, value: &T) -> Result<()> {
        put(self.journal, key.into_key().within(self.scope).as_str(), value)
    }
}

impl fmt::Debug for PromotionJournal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromotionJournal").finish_non_exhaustive()
    }
}

/// Calls a function before the call becomes a task; see [`Durable::on_promotion`].
#[must_use = "the function is not called after the guard is dropped"]
pub struct PromotionGuard {
    run: Arc<RunState>,
}

impl Drop for PromotionGuard {
    fn drop(&mut self) {
        self.run.set_promotion_hook(None);
    }
}

impl fmt::Debug for PromotionGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromotionGuard").finish_non_exhaustive()
    }
}

fn put<T: Serialize>(journal: &Journal, key: &str, value: &T) -> Result<()> {
    let (raw, secret) = record(|| to_raw_value(value));
    journal.put(key, raw?, secret).map_err(DurableError::from)?;
    Ok(())
}

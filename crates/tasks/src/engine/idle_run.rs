//! [`IdleRun`]: a run that waits for input in memory, because it cannot be parked.
//!
//! It counts in its own limits, and lends its slot to another task, so that users who do not respond
//! cannot fill the engine.

use std::{fmt, sync::Arc};

use super::{handle::Engine, idle_runs::TooManyIdleRuns, state::EngineState};
use crate::store::TaskId;

/// A run of a task that waits for input and cannot be parked. Its slot is lent to another task until
/// the value is dropped.
#[must_use = "dropping this value ends the wait"]
pub struct IdleRun {
    engine: Arc<EngineState>,
    task: TaskId,
    caller: Arc<str>,
    has_slot: bool,
}

impl Engine {
    /// Counts a run of a task in this process as idle. Returns `None` if the task does not run here.
    ///
    /// # Errors
    ///
    /// Returns the limit if too many runs are idle.
    pub fn idle_run(&self, task: &TaskId) -> Result<Option<IdleRun>, TooManyIdleRuns> {
        let engine = &self.0;
        let Some(run) = engine.lock_running().get(task).and_then(|signals| signals.run.clone())
        else {
            return Ok(None);
        };
        let is_first = engine.idle_runs.enter(task, &run.principal, &engine.config)?;
        let (task, caller) = (task.clone(), run.principal);
        let idle = IdleRun { engine: Arc::clone(engine), task, caller, has_slot: run.has_slot };
        if is_first {
            idle.lend();
        }
        Ok(Some(idle))
    }
}

impl IdleRun {
    fn lend(&self) {
        let engine = &self.engine;
        engine.shares.count_out(&self.caller);
        if self.has_slot {
            engine.slots.add_permits(1);
        }
        engine.due.notify_one();
    }

    fn take_back(&self) {
        let engine = &self.engine;
        engine.shares.count_in(&self.caller, usize::MAX);
        if self.has_slot && engine.slots.forget_permits(1) == 0 {
            engine.idle_runs.add_owed();
        }
    }
}

impl Drop for IdleRun {
    fn drop(&mut self) {
        if self.engine.idle_runs.leave(&self.task, &self.caller) {
            self.take_back();
        }
    }
}

impl fmt::Debug for IdleRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IdleRun").field("task", &self.task).finish_non_exhaustive()
    }
}

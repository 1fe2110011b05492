//! Counts of the idle runs that cannot be parked, because they hold something that no replay restores.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::config::EngineConfig;
use crate::store::TaskId;

/// The idle runs of an engine.
#[derive(Default)]
pub(super) struct IdleRuns(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    /// Number of guards of each run.
    runs: HashMap<TaskId, usize>,
    /// Number of runs of each caller.
    callers: HashMap<Arc<str>, usize>,
    /// Number of lent slots that were not free when their run continued. The next free ones replace
    /// them.
    owed: usize,
}

/// A limit of idle runs that is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a name")]
pub struct TooManyIdleRuns {
    /// Name of the limit.
    pub limit: &'static str,
}

impl IdleRuns {
    /// Counts a guard of a run. Returns whether it is the first one of the run.
    pub(super) fn enter(
        &self,
        task: &TaskId,
        caller: &Arc<str>,
        config: &EngineConfig,
    ) -> Result<bool, TooManyIdleRuns> {
        let mut counts = self.lock();
        if let Some(guards) = counts.runs.get_mut(task) {
            *guards += 1;
            return Ok(false);
        }
        let of_caller = counts.callers.get(caller).copied().unwrap_or_default();
        if of_caller >= config.max_idle_runs_per_caller {
            return Err(TooManyIdleRuns { limit: "max_idle_runs_per_caller" });
        }
        if counts.runs.len() >= config.max_idle_runs {
            return Err(TooManyIdleRuns { limit: "max_idle_runs" });
        }
        counts.runs.insert(task.clone(), 1);
        counts.callers.insert(Arc::clone(caller), of_caller + 1);
        Ok(true)
    }

    /// Counts a guard less. Returns whether it was the last one of its run.
    pub(super) fn leave(&self, task: &TaskId, caller: &Arc<str>) -> bool {
        let mut counts = self.lock();
        if let Some(guards) = counts.runs.get_mut(task).filter(|guards| **guards > 1) {
            *guards -= 1;
            return false;
        }
        counts.runs.remove(task);
        match counts.callers.get_mut(caller).filter(|runs| **runs > 1) {
            Some(runs) => *runs -= 1,
            None => drop(counts.callers.remove(caller)),
        }
        true
    }

    /// Records that a lent slot is not free.
    pub(super) fn add_owed(&self) {
        self.lock().owed += 1;
    }

    /// Returns whether a slot that becomes free replaces a lent one.
    pub(super) fn take_owed(&self) -> bool {
        let mut counts = self.lock();
        let is_owed = counts.owed > 0;
        counts.owed -= usize::from(is_owed);
        is_owed
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_counts_once_for_its_caller_and_in_all() {
        let runs = IdleRuns::default();
        let config = EngineConfig {
            max_idle_runs: 3,
            max_idle_runs_per_caller: 2,
            ..EngineConfig::default()
        };
        let (ann, bob): (Arc<str>, Arc<str>) = ("ann".into(), "bob".into());
        let enter = |task: &str, caller: &Arc<str>| runs.enter(&TaskId::new(task), caller, &config);
        let limit = |limit| Err(TooManyIdleRuns { limit });
        assert_eq!(enter("a", &ann), Ok(true));
        assert_eq!(enter("a", &ann), Ok(false));
        assert_eq!(enter("b", &ann), Ok(true));
        assert_eq!(enter("c", &ann), limit("max_idle_runs_per_caller"));
        assert_eq!(enter("c", &bob), Ok(true));
        assert_eq!(enter("d", &bob), limit("max_idle_runs"));
        assert!(!runs.leave(&TaskId::new("a"), &ann));
        assert!(runs.leave(&TaskId::new("a"), &ann));
        assert_eq!(enter("d", &ann), Ok(true));
    }
}

//! Comparison of a run with the journal that it replayed.

use super::{
    inputs::{APPROVAL, START},
    state::{DUE, Journal, ONCE},
};

/// Differences between a run and the journal that it replayed. They indicate a changed or
/// nondeterministic handler.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReplayMismatch {
    /// Keys of entries that the run did not use.
    pub unused: Vec<String>,
    /// Scopes that emitted fewer segments than an earlier run.
    pub missing_segments: Vec<String>,
}

impl Journal {
    /// Compares a run that has ended with the journal that it replayed.
    pub fn replay_mismatch(&self) -> ReplayMismatch {
        let state = self.lock();
        // The deadline of an input request and the start mark of a step are not used by handlers. A
        // `#` in an author's key is escaped.
        let is_ours = |key: &str| {
            [DUE, ONCE]
                .iter()
                .any(|mark| key.strip_suffix(mark).is_some_and(|of| !of.ends_with('\\')))
        };
        // A gate uses these entries before the handler starts.
        let is_of_gate = |key: &str| [APPROVAL, START].contains(&key);
        let is_unused =
            |key: &&String| !state.steps.has_used(key) && !is_ours(key) && !is_of_gate(key);
        let unused = match state.skips_entries {
            true => Vec::new(),
            false => state.keys().filter(is_unused).cloned().collect(),
        };
        let is_done = |scope: &str| state.entry(scope).is_some();
        let behind = state.segments.behind(is_done).map(str::to_owned);
        let mut missing_segments: Vec<String> = behind.collect();
        missing_segments.sort();
        ReplayMismatch { unused, missing_segments }
    }
}

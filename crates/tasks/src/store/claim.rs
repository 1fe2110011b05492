//! [`Claim`]: which tasks a worker claims.

use std::collections::HashMap;

use super::TaskId;

/// Which tasks a worker claims, and how many per principal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// Maximum number of due tasks.
    pub limit: usize,
    /// Additional tasks to claim even if they are not due, provided that they are queued or parked.
    pub wanted: Vec<TaskId>,
    /// Maximum number of tasks of one principal that this worker runs.
    pub max_per_principal: usize,
    /// Number of tasks of each principal that this worker already runs.
    pub running: HashMap<String, usize>,
}

impl Claim {
    /// Creates a claim of at most `limit` due tasks of any principal.
    pub fn new(limit: usize) -> Self {
        let (wanted, running) = (Vec::new(), HashMap::new());
        Self { limit, wanted, max_per_principal: usize::MAX, running }
    }

    /// Returns how many more tasks of a principal may be claimed.
    pub fn room_of(&self, principal: &str) -> usize {
        let running = self.running.get(principal).copied().unwrap_or(0);
        self.max_per_principal.saturating_sub(running)
    }

    /// Returns the principals that are at their limit.
    pub fn full(&self) -> Vec<String> {
        let full = self.running.iter().filter(|(_, running)| **running >= self.max_per_principal);
        full.map(|(principal, _)| principal.clone()).collect()
    }
}

impl From<usize> for Claim {
    fn from(limit: usize) -> Self {
        Self::new(limit)
    }
}

/// Number of tasks of each principal that a claim has taken.
pub(super) struct Taken<'a> {
    claim: &'a Claim,
    taken: HashMap<String, usize>,
}

impl<'a> Taken<'a> {
    pub(super) fn new(claim: &'a Claim) -> Self {
        Self { claim, taken: HashMap::new() }
    }

    /// Counts one more task of a principal. Returns `false` if the principal is at its limit.
    pub(super) fn take(&mut self, principal: &str) -> bool {
        let room = self.claim.room_of(principal);
        if let Some(taken) = self.taken.get_mut(principal) {
            let may = *taken < room;
            *taken += usize::from(may);
            return may;
        }
        if room > 0 {
            self.taken.insert(principal.to_owned(), 1);
        }
        room > 0
    }
}

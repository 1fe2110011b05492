//! Which tasks a worker claims.

use std::collections::HashMap;

use super::TaskId;

/// Which tasks a worker claims, and how many of each principal.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// How many tasks that are due.
    pub limit: usize,
    /// Tasks that are claimed as well, due or not, if they are queued or parked.
    pub wanted: Vec<TaskId>,
    /// How many tasks of one principal this worker runs at most.
    pub max_per_principal: usize,
    /// How many tasks of each principal it runs already.
    pub running: HashMap<String, usize>,
}

impl Claim {
    /// Creates a claim of at most `limit` due tasks of any principal.
    pub fn new(limit: usize) -> Self {
        let (wanted, running) = (Vec::new(), HashMap::new());
        Self { limit, wanted, max_per_principal: usize::MAX, running }
    }

    /// How many more tasks of a principal may be claimed.
    pub fn room_of(&self, principal: &str) -> usize {
        let running = self.running.get(principal).copied().unwrap_or(0);
        self.max_per_principal.saturating_sub(running)
    }

    /// The principals that are at their limit.
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

/// Counts what a claim takes of each principal.
pub(super) struct Taken<'a> {
    claim: &'a Claim,
    taken: HashMap<String, usize>,
}

impl<'a> Taken<'a> {
    pub(super) fn new(claim: &'a Claim) -> Self {
        Self { claim, taken: HashMap::new() }
    }

    /// Counts one more of a principal in, if it may have one more.
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

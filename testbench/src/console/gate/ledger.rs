//! The votes of people: what each saw, and which votes the server acknowledged.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A vote that the server acknowledged with 200.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Acknowledged {
    pub(super) task: String,
    /// Wire key of the approval request.
    pub(super) request: String,
    pub(super) person: &'static str,
    pub(super) accepts: bool,
}

/// All votes of a campaign.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Votes>);

#[derive(Debug, Default)]
pub(super) struct Votes {
    /// People who sent an approval of these words, acknowledged or not. The words are the command
    /// as the page shows it.
    seen: HashMap<Vec<String>, BTreeSet<&'static str>>,
    pub(super) acknowledged: HashSet<Acknowledged>,
}

impl Ledger {
    /// Records that a person is about to approve a call with these words.
    pub(super) fn approves(&self, words: Vec<String>, person: &'static str) {
        self.votes().seen.entry(words).or_default().insert(person);
    }

    pub(super) fn acknowledge(&self, vote: Acknowledged) {
        self.votes().acknowledged.insert(vote);
    }

    pub(super) fn into_votes(self) -> Votes {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// A poisoned lock is usable: each change is one insertion.
    fn votes(&self) -> MutexGuard<'_, Votes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Votes {
    /// Number of people who approved exactly these words.
    pub(super) fn approvals(&self, words: &[String]) -> usize {
        self.seen.get(words).map_or(0, BTreeSet::len)
    }
}

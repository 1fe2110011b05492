//! How many tasks there are for each address whose callers have no name.
//!
//! Counted by each process for what it has made: to the store such a task belongs to whoever has its
//! id, from wherever. The cap on all of them together is the store's.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use outlive_protocol::{Call, Fault};
use outlive_tasks::store::TaskId;

use super::{Tasks, unavailable};
use crate::server::core::caller_key;

/// How often the tasks of an address that has as many as it may are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The tasks that this process has made for callers without a name, by address.
#[derive(Default)]
pub(super) struct Peers {
    // A std mutex: nothing awaits while it is held.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_address: HashMap<String, Of>,
    address_of: HashMap<TaskId, String>,
}

#[derive(Default)]
struct Of {
    tasks: HashSet<TaskId>,
    /// When it was last looked which of them have ended.
    looked: Option<Instant>,
}

impl Peers {
    /// Counts a task in, before it is made; `false` if its address has as many as it may.
    fn enter(&self, address: &str, task: &TaskId, (each, all): (usize, usize)) -> bool {
        let mut known = self.lock();
        if known.address_of.len() >= all.saturating_mul(2) {
            // Most of them must have ended elsewhere: the store has no more than `all`.
            *known = Known::default();
        }
        let of = known.by_address.entry(address.to_owned()).or_default();
        if of.tasks.len() >= each {
            return false;
        }
        of.tasks.insert(task.clone());
        known.address_of.insert(task.clone(), address.to_owned());
        true
    }

    /// A task was not made, or is over.
    pub(super) fn leave(&self, task: &TaskId) {
        let mut known = self.lock();
        let Some(address) = known.address_of.remove(task) else { return };
        if let Some(of) = known.by_address.get_mut(&address) {
            of.tasks.remove(task);
            if of.tasks.is_empty() {
                known.by_address.remove(&address);
            }
        }
    }

    /// The tasks of an address that may have ended elsewhere, unless that was asked just now.
    fn to_look_at(&self, address: &str) -> Vec<TaskId> {
        let mut known = self.lock();
        let Some(of) = known.by_address.get_mut(address) else { return Vec::new() };
        if of.looked.is_some_and(|looked| looked.elapsed() < LOOK_EVERY) {
            return Vec::new();
        }
        of.looked = Some(Instant::now());
        of.tasks.iter().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tasks {
    /// Lets a caller make a task, unless it has no name and its address has as many as it may. Who
    /// does not make it after all says so to [`Peers::leave`].
    pub(super) async fn admit(&self, call: &Call, task: &TaskId) -> Result<(), Fault> {
        if self.admits(call, task) {
            return Ok(());
        }
        let principal = call.principal().key();
        for task in self.peers.to_look_at(&caller_key(call)) {
            let view = self.engine().view(principal, &task).await;
            let view = view.map_err(|error| unavailable(&error))?;
            if view.is_none_or(|view| view.outcome.is_some()) {
                self.peers.leave(&task);
            }
        }
        match self.admits(call, task) {
            true => Ok(()),
            false => Err(Fault::Busy { retry_after: LOOK_EVERY }),
        }
    }

    /// The same, for who cannot wait: nobody looks what has ended elsewhere.
    pub(super) fn admits(&self, call: &Call, task: &TaskId) -> bool {
        let quotas = (self.config.quota, self.config.anonymous);
        !call.principal().is_anonymous() || self.peers.enter(&caller_key(call), task, quotas)
    }

    /// How many tasks whoever makes this call may have, and those that are counted with it.
    pub(super) fn quota(&self, call: &Call) -> usize {
        match call.principal().is_anonymous() {
            true => self.config.anonymous,
            false => self.config.quota,
        }
    }
}

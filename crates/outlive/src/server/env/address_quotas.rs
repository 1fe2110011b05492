//! How many tasks there are for each address whose callers have no name, and how much it has stored.
//!
//! Counted by each process for what it has made: to the store such a task belongs to whoever has its
//! id, from wherever. The cap on all of them together is the store's.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use outlive_protocol::ProtocolError;
use outlive_tasks::store::{NewTask, TaskId};

/// How often the tasks of an address that has as many as it may are looked at, at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What a task counts beside its request; as in the stores.
const TASK_BYTES: usize = 2_048;

/// The tasks that this process has made for callers without a name, by address.
#[derive(Default)]
pub(crate) struct AddressQuotas {
    // A std mutex: nothing awaits while it is held.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_address: HashMap<String, Of>,
    address_of: HashMap<TaskId, String>,
    /// What each address has stored, ended tasks included.
    stored: HashMap<String, Stored>,
}

/// What an address has stored, each part until it is forgotten.
#[derive(Default)]
struct Stored {
    bytes: usize,
    parts: VecDeque<(Instant, usize)>,
}

impl Stored {
    fn add(&mut self, until: Instant, bytes: usize) {
        self.bytes += bytes;
        self.parts.push_back((until, bytes));
    }

    /// How much there is, without what has been forgotten.
    fn now(&mut self) -> usize {
        let (now, Self { bytes: all, parts }) = (Instant::now(), self);
        parts.retain(|(until, bytes)| {
            let is_there = *until > now;
            if !is_there {
                *all -= bytes;
            }
            is_there
        });
        *all
    }
}

/// Why an address gets no task.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Tasks,
    Bytes,
}

#[derive(Default)]
struct Of {
    tasks: HashSet<TaskId>,
    /// When it was last looked which of them have ended.
    looked: Option<Instant>,
}

impl AddressQuotas {
    /// Counts a task in, before it is made; or why its address may not have it.
    pub(crate) fn enter(
        &self,
        address: &str,
        task: &NewTask,
        (each, all): (usize, usize),
        max_bytes: u64,
    ) -> Result<(), Over> {
        let mut known = self.lock();
        if known.address_of.len() >= all.saturating_mul(2) {
            // Most of them must have ended elsewhere: the store has no more than `all`.
            *known = Known::default();
        }
        let of = known.by_address.entry(address.to_owned()).or_default();
        if of.tasks.len() >= each {
            return Err(Over::Tasks);
        }
        let stored = known.stored.entry(address.to_owned()).or_default();
        let bytes = TASK_BYTES + task.request.get().len();
        if (stored.now() + bytes) as u64 > max_bytes {
            return Err(Over::Bytes);
        }
        stored.add(Instant::now() + task.ttl.unwrap_or(task.max_ttl), bytes);
        let of = known.by_address.entry(address.to_owned()).or_default();
        of.tasks.insert(task.id.clone());
        known.address_of.insert(task.id.clone(), address.to_owned());
        Ok(())
    }

    /// A task is over, with so many bytes of a result. They count for as long as its request does.
    pub(crate) fn end(&self, task: &TaskId, bytes: usize) {
        let mut known = self.lock();
        let address = known.address_of.get(task).cloned();
        let stored = address.and_then(|address| known.stored.get_mut(&address));
        if let Some(stored) = stored
            && let Some((until, _)) = stored.parts.back().copied()
        {
            stored.add(until, bytes);
        }
        drop(known);
        self.leave(task);
    }

    /// A task was not made, or is over.
    pub(crate) fn leave(&self, task: &TaskId) {
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
    pub(crate) fn to_look_at(&self, address: &str) -> Vec<TaskId> {
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

/// What a caller hears whose address has as much as it may.
impl From<Over> for ProtocolError {
    fn from(over: Over) -> Self {
        let (limit, retry_after) = match over {
            Over::Tasks => ("max_tasks_per_caller", LOOK_EVERY),
            Over::Bytes => ("max_store_bytes_per_caller", Duration::from_secs(60)),
        };
        Self::OverLimit { limit: limit.into(), retry_after }
    }
}

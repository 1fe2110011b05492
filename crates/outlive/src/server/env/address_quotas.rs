//! Quotas of anonymous callers by network address: open tasks and stored bytes.
//!
//! Each process counts the tasks that it creates. In the store, all anonymous tasks belong to one
//! principal, and the store enforces their common limit.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use outlive_protocol::ProtocolError;
use outlive_tasks::store::{NewTask, TaskId};

/// Minimum interval between two checks for ended tasks of an address over its quota.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Bytes that a task counts in addition to its request. The stores use the same number.
const TASK_BYTES: usize = 2_048;

/// Minimum number of addresses at which those without stored bytes are removed.
const MANY_ADDRESSES: usize = 1_024;

/// Tasks that this process created for anonymous callers, by network address.
#[derive(Default)]
pub(crate) struct AddressQuotas {
    // A std mutex: nothing awaits while it is held.
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    by_address: HashMap<String, Of>,
    /// The address of each task, and when its bytes no longer count.
    address_of: HashMap<TaskId, (String, Instant)>,
    /// Bytes that each address has stored, ended tasks included.
    stored: HashMap<String, Stored>,
    /// Number of addresses after the last removal.
    remaining: usize,
}

impl Known {
    /// Makes room for a new address: removes addresses without stored bytes if their number has
    /// doubled since the last removal. Returns the number of addresses that it checked.
    ///
    /// Each new address therefore pays for at most two checks, however many addresses expire.
    fn make_room_for(&mut self, address: &str) -> usize {
        let count = self.stored.len();
        if count < MANY_ADDRESSES.max(2 * self.remaining) || self.stored.contains_key(address) {
            return 0;
        }
        self.stored.retain(|_, stored| stored.now() > 0);
        self.remaining = self.stored.len();
        count
    }
}

/// Bytes that an address has stored, by the time when they no longer count.
#[derive(Default)]
struct Stored {
    bytes: usize,
    /// One entry per second of [`Stored::second`], so that neither time nor memory grows with the
    /// number of tasks.
    until: BTreeMap<u64, usize>,
}

impl Stored {
    fn add(&mut self, until: Instant, bytes: usize) {
        self.bytes += bytes;
        *self.until.entry(Self::second(until) + 1).or_default() += bytes;
    }

    /// Returns the stored bytes without expired ones.
    fn now(&mut self) -> usize {
        let now = Self::second(Instant::now());
        while let Some(first) = self.until.first_entry().filter(|first| *first.key() <= now) {
            self.bytes -= first.remove();
        }
        self.bytes
    }

    /// Returns the whole seconds from the first use of this function to a time.
    fn second(time: Instant) -> u64 {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        time.saturating_duration_since(*START).as_secs()
    }
}

/// Quota that an address exceeds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Tasks,
    Bytes,
}

#[derive(Default)]
struct Of {
    tasks: HashSet<TaskId>,
    /// Time of the last check for ended tasks.
    looked: Option<Instant>,
}

impl AddressQuotas {
    /// Counts a task before it is created. Returns the exceeded quota if the address may not create
    /// it.
    pub(crate) fn enter(
        &self,
        address: &str,
        task: &NewTask,
        (each, all): (usize, usize),
        max_bytes: u64,
    ) -> Result<(), Over> {
        let mut known = self.lock();
        if known.address_of.len() >= all.saturating_mul(2) {
            // The store admits at most `all` open tasks, so most of these have ended on other
            // replicas.
            *known = Known::default();
        }
        if known.by_address.get(address).is_some_and(|of| of.tasks.len() >= each) {
            return Err(Over::Tasks);
        }
        known.make_room_for(address);
        let stored = known.stored.entry(address.to_owned()).or_default();
        let bytes = TASK_BYTES + task.request.get().len();
        if (stored.now() + bytes) as u64 > max_bytes {
            return Err(Over::Bytes);
        }
        let until = Instant::now() + task.ttl.unwrap_or(task.max_ttl);
        stored.add(until, bytes);
        let of = known.by_address.entry(address.to_owned()).or_default();
        of.tasks.insert(task.id.clone());
        known.address_of.insert(task.id.clone(), (address.to_owned(), until));
        Ok(())
    }

    /// Adds the bytes of the result when a task ends. They count as long as the request does.
    pub(crate) fn end(&self, task: &TaskId, bytes: usize) {
        let mut known = self.lock();
        let Known { address_of, stored, .. } = &mut *known;
        if let Some((address, until)) = address_of.get(task)
            && let Some(stored) = stored.get_mut(address)
        {
            stored.add(*until, bytes);
        }
        drop(known);
        self.leave(task);
    }

    /// Removes a task that was not created or has ended.
    pub(crate) fn leave(&self, task: &TaskId) {
        let mut known = self.lock();
        let Some((address, _)) = known.address_of.remove(task) else { return };
        if let Some(of) = known.by_address.get_mut(&address) {
            of.tasks.remove(task);
            if of.tasks.is_empty() {
                known.by_address.remove(&address);
            }
        }
    }

    /// Returns the tasks of an address that may have ended on other replicas, unless they were
    /// checked recently.
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

impl Over {
    /// Returns the name of the limit.
    pub(crate) fn limit(self) -> &'static str {
        match self {
            Self::Tasks => "max_tasks_per_caller",
            Self::Bytes => "max_store_bytes_per_caller",
        }
    }
}

impl From<Over> for ProtocolError {
    fn from(over: Over) -> Self {
        let retry_after = match over {
            Over::Tasks => LOOK_EVERY,
            Over::Bytes => Duration::from_secs(60),
        };
        Self::OverLimit { limit: over.limit().into(), retry_after }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{Known, MANY_ADDRESSES, Stored};

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn addresses_without_stored_bytes_are_removed_only_for_a_new_address() {
        let mut known = Known::default();
        for number in 0..MANY_ADDRESSES {
            known.stored.insert(number.to_string(), Stored::default());
        }
        assert_eq!(known.make_room_for("7"), 0);
        assert_eq!(known.stored.len(), MANY_ADDRESSES);
        assert_eq!(known.make_room_for("new"), MANY_ADDRESSES);
        assert_eq!(known.stored.len(), 0);
    }

    #[test]
    fn new_address_costs_two_checks_while_one_address_expires_per_new_one() {
        let mut known = Known::default();
        let (later, mut created, mut checked) = (Instant::now() + HOUR, 0_usize, 0);
        // At these numbers of stored addresses, one expires whenever one is new.
        for number in [MANY_ADDRESSES - 1, MANY_ADDRESSES, 3_000, 4 * MANY_ADDRESSES] {
            for _ in 0..10_000 {
                if known.stored.len() >= number
                    && let Some(oldest) = known.stored.get_mut(&(created - number).to_string())
                {
                    *oldest = Stored::default();
                }
                let address = created.to_string();
                checked += known.make_room_for(&address);
                known.stored.entry(address).or_default().add(later, 1);
                created += 1;
            }
        }
        assert!(checked <= 2 * created, "{checked} checks for {created} new addresses");
    }

    #[test]
    fn removal_keeps_addresses_with_stored_bytes() {
        let mut known = Known::default();
        let later = Instant::now() + HOUR;
        for number in 0..MANY_ADDRESSES {
            let stored = known.stored.entry(number.to_string()).or_default();
            if number < 10 {
                stored.add(later, 1);
            }
        }
        assert_eq!(known.make_room_for("new"), MANY_ADDRESSES);
        assert_eq!((known.stored.len(), known.remaining), (10, 10));
        assert_eq!(known.make_room_for("new"), 0);
    }

    #[test]
    fn stored_bytes_of_one_second_are_one_entry_and_expire() {
        let mut stored = Stored::default();
        let start = Instant::now();
        for _ in 0..1_000 {
            stored.add(start + HOUR, 10);
        }
        assert_eq!((stored.now(), stored.until.len()), (10_000, 1));
        stored.until = [(0, 4_000), (u64::MAX, 6_000)].into();
        assert_eq!((stored.now(), stored.until.len()), (6_000, 1));
    }
}

//! Concurrency slots (*places*) of jobs, and jobs that wait for input.
//!
//! A job holds its slot until its processes have exited, even if its call has ended.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use outlive::server::{
    Durable,
    durable::{Capacity, Permit},
};
use outlive_jobs::{JobInfo, Jobs, State};
use serde::{Deserialize, Serialize};

/// Tool and caller of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Label {
    /// Name of the tool.
    pub(crate) tool: String,
    /// Caller: a principal, or the network address of an anonymous client.
    pub(crate) caller: String,
}

impl Label {
    pub(super) fn new(tool: &str, call: &Durable) -> Self {
        let caller = match call.principal().name() {
            Some(_) => call.principal().key().to_owned(),
            None => call.call().peer_addr().map_or_else(String::new, |address| address.to_string()),
        };
        Self { tool: tool.to_owned(), caller }
    }

    pub(crate) fn of(job: &JobInfo) -> Option<Self> {
        serde_json::from_str(job.label.as_deref()?).ok()
    }
}

/// Time after which a slot without a running job is released.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// Concurrency slots of all tools of a server.
#[derive(Default)]
pub(super) struct Places(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Capacities by tool.
    capacities: HashMap<String, Capacity>,
    /// Slots by job.
    places: HashMap<String, Place>,
    /// Callers by job, for jobs that wait for input in an inline call.
    waiting: HashMap<String, String>,
}

/// Slot of one job.
struct Place {
    /// Caller of the job.
    caller: String,
    since: Instant,
    _permit: Permit,
}

impl Places {
    /// Adds the running jobs of an earlier server.
    pub(super) fn adopt(&self, jobs: &Jobs) {
        for job in jobs.list().unwrap_or_default() {
            let Some(label) = Label::of(&job).filter(|_| job.state == State::Running) else {
                continue;
            };
            let permit = self.capacity(&label.tool, None).force_acquire();
            if job.waits_for.is_some() && job.note.is_none() {
                self.lock().waiting.insert(job.id.clone(), label.caller.clone());
            }
            self.give(&job.id, &label.caller, permit);
        }
    }

    /// Returns the capacity of a tool. `max` is its `max_concurrent`, if known.
    pub(super) fn capacity(&self, tool: &str, max: Option<u32>) -> Capacity {
        let mut held = self.lock();
        let name = || Capacity::new(format!("tools.{tool}.max_concurrent"), 0);
        let capacity = held.capacities.entry(tool.to_owned()).or_insert_with(name).clone();
        drop(held);
        if let Some(max) = max {
            capacity.set_max(max as usize);
        }
        capacity
    }

    pub(super) fn has(&self, job: &str) -> bool {
        self.lock().places.contains_key(job)
    }

    /// Assigns a slot to a job.
    pub(super) fn give(&self, job: &str, caller: &str, permit: Permit) {
        let place = Place { caller: caller.to_owned(), since: Instant::now(), _permit: permit };
        let before = self.lock().places.insert(job.to_owned(), place);
        // Outside the lock, because dropping a permit may wake other calls.
        drop(before);
    }

    /// Returns the niceness of a job. It grows with the caller's other jobs, so that a caller with
    /// many jobs does not slow down other callers or the server.
    pub(super) fn niceness(&self, job: &str, caller: &str) -> i32 {
        /// Number of jobs per caller that run at the priority of the server.
        const FREE: usize = 2;
        const MAX: i32 = 15;
        let held = self.lock();
        let is_other = |(id, place): &(&String, &Place)| *id != job && place.caller == caller;
        let others = held.places.iter().filter(is_other).count();
        i32::try_from((others + 1).saturating_sub(FREE) * 2).map_or(MAX, |nice| nice.min(MAX))
    }

    /// Releases the slot of a job whose processes have all exited.
    pub(super) fn release(&self, job: &str) {
        let mut held = self.lock();
        held.waiting.remove(job);
        let place = held.places.remove(job);
        drop(held);
        drop(place);
    }

    /// Releases the slots of all jobs that exited while no call followed them.
    pub(super) fn release_ended(&self, jobs: &Jobs) {
        let held = self.lock();
        let places = held.places.iter().map(|(job, place)| (job.clone(), place.since));
        let places: Vec<(String, Instant)> = places.collect();
        drop(held);
        for (job, since) in places {
            // A job without a folder is about to start, unless its call was dropped before that.
            let may_start = since.elapsed() < STARTS_WITHIN;
            let is_terminal = jobs.has_ended(&job).unwrap_or(false);
            if is_terminal || !may_start && !jobs.may_run(&job).unwrap_or(true) {
                self.release(&job);
            }
        }
    }

    /// Records that a job waits for input in an inline call. Returns false if its caller already
    /// has `max` of them.
    pub(super) fn wait(&self, job: &str, caller: &str, max: usize) -> bool {
        let mut held = self.lock();
        let others = held.waiting.iter().filter(|(id, other)| *id != job && *other == caller);
        if others.count() >= max {
            return false;
        }
        held.waiting.insert(job.to_owned(), caller.to_owned());
        true
    }

    /// Records that a job no longer waits for input in an inline call.
    pub(super) fn go_on(&self, job: &str) {
        self.lock().waiting.remove(job);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Places;

    #[test]
    fn niceness_grows_only_with_jobs_of_same_caller() {
        let places = Places::default();
        let capacity = places.capacity("work", Some(100));
        let start = |number: usize, caller: &str| {
            let job = format!("{caller}-{number}");
            places.give(&job, caller, capacity.force_acquire());
            places.niceness(&job, caller)
        };
        let hostile: Vec<i32> = (0..12).map(|number| start(number, "hostile")).collect();
        assert_eq!(hostile, [0, 0, 2, 4, 6, 8, 10, 12, 14, 15, 15, 15]);
        assert_eq!(start(0, "honest"), 0);
        places.release("hostile-3");
        assert_eq!(places.niceness("hostile-2", "hostile"), 15);
        (4..12).for_each(|number| places.release(&format!("hostile-{number}")));
        assert_eq!(places.niceness("hostile-2", "hostile"), 2);
    }
}

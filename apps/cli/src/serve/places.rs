//! Which jobs hold a place among those of their tool, and which wait for input: until their processes have exited,
//! whatever becomes of the calls that started them.

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

/// What a job is, and for whom it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Label {
    /// Name of the tool.
    pub(crate) tool: String,
    /// Who has called it: a name, or the address of a caller without one.
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

/// How long a job may have a place before it is there.
const STARTS_WITHIN: Duration = Duration::from_secs(60);

/// The places of all tools of a server.
#[derive(Default)]
pub(super) struct Places(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Capacities by tool.
    capacities: HashMap<String, Capacity>,
    /// Places by job.
    places: HashMap<String, Place>,
    /// Callers by job, of commands that wait for input in a call that is no task.
    waiting: HashMap<String, String>,
}

/// The place of one job.
struct Place {
    /// Whom the job runs for.
    caller: String,
    since: Instant,
    _permit: Permit,
}

impl Places {
    /// Counts the jobs that run already, because they have outlived the server that started them.
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

    /// The capacity of a tool. `max` is its `concurrency`, where it is known.
    pub(super) fn capacity(&self, tool: &str, max: Option<u32>) -> Capacity {
        let mut held = self.lock();
        let name = || Capacity::new(format!("tools.{tool}.concurrency"), 0);
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

    /// Gives a job its place.
    pub(super) fn give(&self, job: &str, caller: &str, permit: Permit) {
        let place = Place { caller: caller.to_owned(), since: Instant::now(), _permit: permit };
        let before = self.lock().places.insert(job.to_owned(), place);
        // Dropping a permit may wake others.
        drop(before);
    }

    /// The priority of a job: the lower, the more jobs its caller has already. So a caller that runs many shares the
    /// processors with itself, and not with others and the server.
    pub(super) fn niceness(&self, job: &str, caller: &str) -> i32 {
        /// So many jobs of a caller run at the priority of the server.
        const FREE: usize = 2;
        const MAX: i32 = 15;
        let held = self.lock();
        let is_other = |(id, place): &(&String, &Place)| *id != job && place.caller == caller;
        let others = held.places.iter().filter(is_other).count();
        i32::try_from((others + 1).saturating_sub(FREE) * 2).map_or(MAX, |nice| nice.min(MAX))
    }

    /// Takes the place of a job back, because none of its processes is left.
    pub(super) fn release(&self, job: &str) {
        let mut held = self.lock();
        held.waiting.remove(job);
        let place = held.places.remove(job);
        drop(held);
        drop(place);
    }

    /// Releases the places of all jobs that exited while no call followed them.
    pub(super) fn release_ended(&self, jobs: &Jobs) {
        let held = self.lock();
        let places = held.places.iter().map(|(job, place)| (job.clone(), place.since));
        let places: Vec<(String, Instant)> = places.collect();
        drop(held);
        for (job, since) in places {
            // One that is not there is about to be started, unless its call was dropped before that.
            let may_start = since.elapsed() < STARTS_WITHIN;
            let is_terminal = jobs.has_ended(&job).unwrap_or(false);
            if is_terminal || !may_start && !jobs.may_run(&job).unwrap_or(true) {
                self.release(&job);
            }
        }
    }

    /// Notes that a job waits for input in a call that is no task, unless its caller has `max` of them.
    pub(super) fn wait(&self, job: &str, caller: &str, max: usize) -> bool {
        let mut held = self.lock();
        let others = held.waiting.iter().filter(|(id, other)| *id != job && *other == caller);
        if others.count() >= max {
            return false;
        }
        held.waiting.insert(job.to_owned(), caller.to_owned());
        true
    }

    /// Notes that a job does not wait, or that a task waits for it.
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
    fn priority_falls_with_the_jobs_of_the_same_caller_and_not_with_those_of_others() {
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

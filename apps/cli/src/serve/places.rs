//! Which jobs hold a place among those of their tool, and which wait for input: until their processes have exited,
//! whatever becomes of the calls that started them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use outlive::server::{Capacity, Durable, Permit};
use serde::{Deserialize, Serialize};

use crate::job::{JobInfo, Jobs, State};

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
            None => call.call().peer().map_or_else(String::new, |address| address.to_string()),
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
    /// Permits by job, and since when it has them.
    permits: HashMap<String, (Permit, Instant)>,
    /// Callers by job, of commands that wait for input in a call that is no task.
    waiting: HashMap<String, String>,
}

impl Places {
    /// Counts the jobs that run already, because they have outlived the server that started them.
    pub(super) fn adopt(&self, jobs: &Jobs) {
        for job in jobs.list().unwrap_or_default() {
            let Some(label) = Label::of(&job).filter(|_| job.state == State::Running) else {
                continue;
            };
            let permit = self.capacity(&label.tool, None).force_acquire();
            let mut held = self.lock();
            if job.waits_for.is_some() && job.note.is_none() {
                held.waiting.insert(job.id.clone(), label.caller);
            }
            held.permits.insert(job.id, (permit, Instant::now()));
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
        self.lock().permits.contains_key(job)
    }

    /// Gives a job its place.
    pub(super) fn give(&self, job: &str, permit: Permit) {
        let before = self.lock().permits.insert(job.to_owned(), (permit, Instant::now()));
        // Dropping a permit may wake others.
        drop(before);
    }

    /// Takes the place of a job back, because none of its processes is left.
    pub(super) fn release(&self, job: &str) {
        let mut held = self.lock();
        held.waiting.remove(job);
        let permit = held.permits.remove(job);
        drop(held);
        drop(permit);
    }

    /// Releases the places of all jobs that exited while no call followed them.
    pub(super) fn release_ended(&self, jobs: &Jobs) {
        let held = self.lock();
        let places = held.permits.iter().map(|(job, (_, since))| (job.clone(), *since));
        let places: Vec<(String, Instant)> = places.collect();
        drop(held);
        for (job, since) in places {
            // One that is not there is about to be started, unless its call was dropped before that.
            let may_start = since.elapsed() < STARTS_WITHIN;
            let is_over = jobs.is_over(&job).unwrap_or(false);
            if is_over || !may_start && !jobs.may_run(&job).unwrap_or(true) {
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

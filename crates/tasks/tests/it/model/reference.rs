//! Reference model: a minimal task, and the effect of each operation on it.

use std::collections::BTreeMap;

use outlive_tasks::store::{
    CancelOutcome, CleanupState, CreateOutcome, Lease, Phase, TaskId, TaskOutcome, TaskRecord,
    WorkerId,
};

use super::{LEASE, MAX_TTL, PAUSE, QUOTA, RETENTION, TTL, UNIT, name};

/// Transition after a commit.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    GoOn,
    Park { due: bool, seen: usize },
    End,
}

/// All tasks. Times are in halves of a unit.
#[derive(Default)]
pub(super) struct Model {
    pub(super) now: u64,
    pub(super) tasks: BTreeMap<TaskId, Task>,
    /// Every task that was ever created.
    pub(super) made: Vec<TaskId>,
    keys: BTreeMap<usize, TaskId>,
}

#[derive(Clone, Debug)]
pub(super) struct Task {
    phase: Phase,
    pub(super) outcome: Option<String>,
    clean_up: bool,
    created: u64,
    ttl: u64,
    purge: Option<u64>,
    /// When a worker must claim the task.
    look: Option<u64>,
    owner: Option<WorkerId>,
    epoch: u64,
    pub(super) begun: bool,
    pub(super) crashes: u32,
    pub(super) cancel_requested: bool,
    pub(super) message: Option<String>,
    entries: BTreeMap<String, String>,
    /// Input requests in the order of their issue: `None` if answered, otherwise whether the
    /// request is open.
    questions: Vec<(String, Option<bool>)>,
    /// Change since the last read.
    changed: Changed,
    /// Creation time and time of the last change at the last read.
    seen: Option<(u64, u64)>,
}

impl Model {
    pub(super) fn create(
        &mut self,
        id: &TaskId,
        worker: Option<usize>,
        key: Option<usize>,
        clean_up: bool,
    ) -> CreateOutcome {
        if let Some(before) = key.and_then(|key| self.keys.get(&key)) {
            return CreateOutcome::Existing(before.clone());
        }
        if self.tasks.values().filter(|task| task.phase != Phase::Ended).count() >= QUOTA {
            return CreateOutcome::QuotaExceeded;
        }
        if let Some(key) = key {
            self.keys.insert(key, id.clone());
        }
        self.made.push(id.clone());
        let now = self.now;
        let task = Task {
            phase: if worker.is_some() { Phase::Running } else { Phase::Queued },
            outcome: None,
            clean_up,
            created: now,
            ttl: TTL,
            purge: None,
            look: Some(if worker.is_some() { now + LEASE } else { now }),
            owner: worker.map(name),
            epoch: u64::from(worker.is_some()),
            begun: worker.is_some(),
            crashes: 0,
            cancel_requested: false,
            message: None,
            entries: BTreeMap::new(),
            questions: Vec::new(),
            changed: Changed::Yes,
            seen: None,
        };
        self.tasks.insert(id.clone(), task);
        let task = id.clone();
        let lease = worker.map(|worker| Lease::new(task, name(worker), 1));
        CreateOutcome::Created { lease, at: now }
    }

    /// Returns the tasks that any worker may claim.
    pub(super) fn due(&self) -> Vec<TaskId> {
        let is_due = |task: &Task| task.look.is_some_and(|look| look <= self.now);
        let due = self.tasks.iter().filter(|(_, task)| is_due(task));
        due.map(|(id, _)| id.clone()).collect()
    }

    /// Claims a task. Returns it in the state that its worker sees.
    pub(super) fn claim(&mut self, lease: &Lease, worker: usize) -> Task {
        let now = self.now;
        let task = self.tasks.get_mut(&lease.task).unwrap();
        task.crashes += u32::from(task.owner.is_some());
        let found = task.clone();
        task.begun = true;
        if task.phase != Phase::Ended {
            task.phase = Phase::Running;
        }
        task.owner = Some(name(worker));
        task.epoch += 1;
        task.look = Some(now + LEASE);
        assert_eq!((lease.epoch, &lease.worker), (task.epoch, &name(worker)), "{lease:?}");
        found
    }

    fn of(&mut self, worker: usize) -> impl Iterator<Item = (&TaskId, &mut Task)> {
        self.tasks.iter_mut().filter(move |(_, task)| task.owner == Some(name(worker)))
    }

    pub(super) fn renew(&mut self, worker: usize) -> Vec<(TaskId, u64)> {
        let until = self.now + LEASE;
        let renewed = self.of(worker).map(|(id, task)| {
            task.look = Some(until);
            (id.clone(), task.epoch)
        });
        renewed.collect()
    }

    pub(super) fn release(&mut self, worker: usize) {
        let now = self.now;
        for (_, task) in self.of(worker) {
            if task.phase == Phase::Running {
                task.phase = Phase::Queued;
            }
            (task.owner, task.look) = (None, Some(now));
        }
    }

    /// Returns the task of a lease that is not lost.
    pub(super) fn held(&mut self, lease: &Lease) -> Option<&mut Task> {
        self.tasks.get_mut(&lease.task).filter(|task| {
            task.phase == Phase::Running
                && task.epoch == lease.epoch
                && task.owner.as_ref() == Some(&lease.worker)
        })
    }

    /// Commits if the lease is not lost.
    pub(super) fn write(
        &mut self,
        lease: &Lease,
        changed: Changed,
        write: impl FnOnce(&mut Task, u64),
    ) -> bool {
        let now = self.now;
        let Some(task) = self.held(lease) else { return false };
        task.changed = task.changed.max(changed);
        write(task, now);
        true
    }

    /// Returns whether the holder of this lease may record the state of the cleanup.
    pub(super) fn clean_up(&mut self, lease: &Lease, said: CleanupState) -> bool {
        let now = self.now;
        let Some(task) = self.tasks.get_mut(&lease.task) else { return false };
        let may = match &task.owner {
            Some(owner) => *owner == lease.worker,
            None => said == CleanupState::Due && task.look.is_some(),
        };
        if task.phase != Phase::Ended || task.epoch != lease.epoch || !may {
            return false;
        }
        (task.owner, task.look) = (None, (said == CleanupState::Due).then_some(now));
        true
    }

    /// Returns the number of accepted responses.
    pub(super) fn answer(
        &mut self,
        id: &TaskId,
        names: &[String],
        outside: bool,
        value: usize,
    ) -> Option<usize> {
        let now = self.now;
        let task = self.tasks.get_mut(id)?;
        if task.phase == Phase::Ended {
            return Some(0);
        }
        let open = task.open().len();
        let mut taken = 0;
        for name in names.iter().filter(|name| (*name == "q3") == outside) {
            let asked = |(known, state): &&mut (String, Option<bool>)| {
                known == name && *state == Some(true)
            };
            if let Some((_, state)) = task.questions.iter_mut().find(asked) {
                *state = None;
                task.entries.entry(name.clone()).or_insert(format!("answer {value}"));
                taken += 1;
            }
        }
        if taken > 0 {
            task.changed = Changed::Yes;
            task.settle(open, now);
            if task.phase == Phase::Parked {
                (task.phase, task.look) = (Phase::Queued, Some(now));
            }
        }
        Some(taken)
    }

    pub(super) fn cancel(&mut self, id: &TaskId, at_once: bool) -> Option<CancelOutcome> {
        let now = self.now;
        let task = self.tasks.get_mut(id)?;
        if task.phase == Phase::Ended {
            return Some(CancelOutcome::AlreadyEnded);
        }
        task.changed = Changed::Yes;
        task.cancel_requested = true;
        if task.phase == Phase::Running && !at_once {
            return Some(CancelOutcome::Requested);
        }
        task.end("cancelled".to_owned(), now);
        Some(CancelOutcome::Cancelled)
    }

    /// Returns the expired tasks, and the number of deleted ones.
    pub(super) fn sweep(&mut self) -> (Vec<TaskId>, usize) {
        let (now, before) = (self.now, self.tasks.len());
        let is_terminal = |task: &Task| task.purge.is_some_and(|purge| purge <= now);
        self.tasks.retain(|_, task| !is_terminal(task) || task.look.is_some());
        let tasks = &mut self.tasks;
        self.keys.retain(|_, id| tasks.contains_key(id));
        let purged = before - tasks.len();
        let mut expired = Vec::new();
        for (id, task) in tasks {
            if task.phase != Phase::Ended && task.created + task.ttl <= now {
                task.end("expired".to_owned(), now);
                task.changed = Changed::Yes;
                expired.push(id.clone());
            }
        }
        (expired, purged)
    }

    /// Returns when a task was created, in the model and by the store's clock.
    pub(super) fn times(&self, id: &TaskId) -> (u64, u64) {
        match self.tasks.get(id) {
            Some(task) => (task.created, task.seen.map_or(0, |(created, _)| created)),
            None => (0, 0),
        }
    }

    pub(super) fn census(&self) -> [u64; 4] {
        let phases = [Phase::Queued, Phase::Running, Phase::Parked, Phase::Ended];
        let count = |phase| self.tasks.values().filter(|task| task.phase == phase).count() as u64;
        phases.map(count)
    }

    /// Checks the record that the principal of a task sees.
    pub(super) fn check(&mut self, id: &TaskId, view: Option<&TaskRecord>) {
        let Some(task) = self.tasks.get_mut(id) else {
            return assert!(view.is_none(), "{id} is deleted");
        };
        let view = view.unwrap_or_else(|| panic!("task {id} is missing"));
        assert_eq!(view.phase, task.phase, "{id}");
        assert_eq!(view.outcome.as_ref().map(outcome), task.outcome, "{id}");
        assert_eq!(view.cancel_requested.is_some(), task.cancel_requested, "{id}");
        assert_eq!(view.status_message, task.message, "{id}");
        let names: Vec<_> = view.input_requests.iter().map(|input| input.name.clone()).collect();
        let mut shown = task.open();
        shown.retain(|name| name != "q3");
        assert_eq!(names, shown, "{id}");
        let half = u64::try_from((UNIT / 2).as_millis()).unwrap();
        let ttl = view.ttl.unwrap();
        assert!(ttl.abs_diff(task.ttl * half) < half / 2, "{id}: TTL {ttl} is not {}", task.ttl);
        if let Some((created, updated)) = task.seen {
            assert_eq!(view.created_at, created, "{id}");
            match task.changed {
                Changed::Yes => {
                    assert!(view.updated_at > updated, "{id}: a change advances updated_at")
                }
                Changed::Recorded => {
                    assert!(view.updated_at >= updated, "{id}: updated_at never decreases")
                }
                Changed::No => {
                    assert_eq!(view.updated_at, updated, "{id}: updated_at stays without a change")
                }
            }
        }
        task.seen = Some((view.created_at, view.updated_at));
        task.changed = Changed::No;
    }
}

/// Kind of change of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Changed {
    No,
    /// A recorded entry, which may appear in `updated_at` later.
    Recorded,
    Yes,
}

impl Task {
    /// Records entries. An existing entry stays.
    pub(super) fn record(&mut self, entries: &[(String, usize)]) {
        for (key, value) in entries {
            if !self.entries.contains_key(key) {
                self.entries.insert(key.clone(), format!("value {value}"));
                self.crashes = 0;
            }
        }
    }

    /// Opens and withdraws input requests. A withdrawn request can be reopened, an answered one
    /// cannot.
    pub(super) fn ask(&mut self, asked: &[String], withdrawn: &[String], now: u64) {
        let open = self.open().len();
        for name in asked {
            let known = self.questions.iter().position(|(known, _)| known == name);
            match known.map(|at| (at, self.questions[at].1)) {
                Some((at, Some(false))) => drop(self.questions.remove(at)),
                Some(_) => continue,
                None => {}
            }
            self.questions.push((name.clone(), Some(true)));
        }
        for (name, state) in &mut self.questions {
            if withdrawn.contains(name) && *state == Some(true) {
                *state = Some(false);
            }
        }
        self.settle(open, now);
    }

    pub(super) fn go_on(&mut self, next: Next, value: usize, now: u64) {
        match next {
            Next::GoOn => {}
            Next::Park { due, seen } => {
                self.owner = None;
                let unseen = self.answers().count() > seen || self.cancel_requested;
                (self.phase, self.look) = match unseen {
                    true => (Phase::Queued, Some(now)),
                    false => (Phase::Parked, due.then_some(now + PAUSE)),
                };
            }
            Next::End => self.end(format!("result {value}"), now),
        }
    }

    /// Ends the task: it stays readable for its retention, and its requests are withdrawn.
    fn end(&mut self, outcome: String, now: u64) {
        assert_eq!(self.outcome, None, "an ended task never changes");
        let open = self.open().len();
        for (_, state) in &mut self.questions {
            *state = state.map(|_| false);
        }
        self.settle(open, now);
        self.ttl = self.ttl.max(now + RETENTION - self.created);
        self.purge = Some(self.created + self.ttl);
        let owed = self.clean_up && self.begun && !outcome.starts_with("result");
        self.look = match (owed, self.phase) {
            (false, _) => None,
            // At the latest when the lease expires.
            (true, Phase::Running) => self.look,
            (true, _) => Some(now),
        };
        if owed {
            self.crashes = 0;
        }
        (self.phase, self.outcome) = (Phase::Ended, Some(outcome));
        self.owner = None;
    }

    /// An open input request extends the TTL, and the last response restarts it.
    fn settle(&mut self, before: usize, now: u64) {
        self.ttl = match (before, self.open().len()) {
            (0, 1..) => MAX_TTL,
            (1.., 0) => (now - self.created + TTL).min(MAX_TTL),
            _ => self.ttl,
        };
    }

    /// Returns the wire keys of the open input requests.
    pub(super) fn open(&self) -> Vec<String> {
        let open = self.questions.iter().filter(|(_, state)| *state == Some(true));
        open.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn answers(&self) -> impl Iterator<Item = &String> {
        self.entries.values().filter(|entry| entry.starts_with("answer"))
    }

    pub(super) fn entries(&self) -> Vec<(String, String)> {
        self.entries.iter().map(|(key, entry)| (key.clone(), entry.clone())).collect()
    }
}

pub(super) fn outcome(outcome: &TaskOutcome) -> String {
    match outcome {
        TaskOutcome::Result(raw) => format!("result {}", raw.get()),
        TaskOutcome::LargeResult(large) => format!("large result {}", large.head.get()),
        TaskOutcome::Error(error) => format!("error {}", error.code),
        TaskOutcome::Cancelled => "cancelled".to_owned(),
        TaskOutcome::Expired => "expired".to_owned(),
    }
}

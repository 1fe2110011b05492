//! A store that forgets everything when the process ends. For tests, and for servers whose tasks
//! may be lost with them; it has to be asked for by name.

mod notes;
mod operating;
mod row;
mod table;

use std::{
    fmt,
    future::ready,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use outlive_wire::RawJson;

use self::{
    notes::{Events, Notes},
    row::Row,
    table::Tasks,
};
use super::{
    After, Answer, Answerer, Audit, AuditEvent, By, Cancelled, Census, Changes, Charge, Claim,
    Claimed, Cleaning, Created, Emitted, Heard, Lease, Listener, Millis, NewTask, OnceKey,
    PageLimit, Phase, Store, StoreError, Swept, TaskId, TaskOutcome, Then, View, WorkerId, budget,
    lifetime::Lifetime,
};

/// Keeps tasks in memory.
#[derive(Default)]
pub struct MemoryStore {
    // A std mutex: nothing awaits while it is held.
    tasks: Mutex<Tasks>,
    notes: Mutex<Notes>,
    events: Mutex<Events>,
    listeners: Mutex<Vec<Listener>>,
    /// How far a test has moved time.
    shifted: AtomicU64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the store's time, for tests.
    pub fn shift(&self, span: Duration) {
        self.shifted.fetch_add(span.as_millis() as u64, Ordering::Relaxed);
    }

    fn now(&self) -> Millis {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        wall.as_millis() as u64 + self.shifted.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        locked(&self.tasks)
    }

    fn tell(&self, task: &TaskId, by: By) {
        let listeners = locked(&self.listeners).clone();
        listeners.iter().for_each(|listener| listener(task, by));
    }
}

impl Store for MemoryStore {
    fn create(&self, task: NewTask) -> Answer<'_, Created> {
        let now = self.now();
        let mut tasks = self.lock();
        if let Some(once) = &task.once
            && let Some(before) = tasks.made(&task.principal, once)
        {
            return done(Ok(before));
        }
        if let Some(row) = tasks.get(&task.id) {
            // Asked for again, because nobody knew whether it had been made.
            return done(match row.principal == task.principal {
                true => Ok(Created::Before(task.id)),
                false => Err(StoreError::Unavailable("the name of the task is taken".to_owned())),
            });
        }
        if tasks.open(&task.principal) >= task.quota {
            return done(Ok(Created::OverQuota));
        }
        let bytes = budget::new_task(&task);
        if (tasks.bytes(&task.principal) + bytes) as u64 > task.max_bytes {
            return done(Ok(Created::OverBytes));
        }
        let id = task.id.clone();
        let lease = task.worker.as_ref().map(|(worker, _)| Lease {
            task: id.clone(),
            worker: worker.clone(),
            epoch: 1,
        });
        let due = task.worker.as_ref().map_or(now, |(_, lease)| now.saturating_add(millis(*lease)));
        tasks.insert(
            id.clone(),
            Row {
                principal: task.principal,
                kind: task.kind,
                origin: task.origin,
                listed: task.listed,
                request: task.request,
                phase: if lease.is_some() { Phase::Running } else { Phase::Queued },
                outcome: None,
                kept: None,
                created: now,
                updated: now,
                lifetime: Lifetime { ttl: task.ttl.map(millis), max: millis(task.max_ttl) },
                ttl: task.ttl.map(millis),
                purge: None,
                message: None,
                progress: None,
                clean_up: task.clean_up,
                cancel_requested: None,
                owner: task.worker.map(|(worker, _)| worker),
                epoch: u64::from(lease.is_some()),
                due: Some(due),
                begun: lease.is_some(),
                crashes: 0,
                emitted: task.journal.segments.iter().map(crate::Segment::place).collect(),
                journal: task.journal,
                questions: Vec::new(),
                bytes,
                once: task.once,
            },
        );
        drop(tasks);
        if lease.is_none() {
            self.tell(&id, By::Anybody);
        }
        done(Ok(Created::New { lease, at: now }))
    }

    fn made<'a>(&'a self, principal: &'a str, once: &'a OnceKey) -> Answer<'a, Option<Created>> {
        done(Ok(self.lock().made(principal, once)))
    }

    fn view<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> Answer<'a, Option<View>> {
        let tasks = self.lock();
        let row = tasks.get(task).filter(|row| row.principal == principal);
        done(Ok(row.map(|row| row.view(task))))
    }

    fn segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> Answer<'a, Option<Emitted>> {
        let tasks = self.lock();
        let row = tasks.get(task).filter(|row| row.principal == principal);
        done(Ok(row.map(|row| row.segments(after, limit))))
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a After>,
        limit: usize,
    ) -> Answer<'a, Vec<View>> {
        let tasks = self.lock();
        let listed = tasks.listed(principal, origin, after).take(limit);
        done(Ok(listed.map(|(id, row)| row.view(id)).collect()))
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> Answer<'a, Vec<Claimed>> {
        let now = self.now();
        let mut tasks = self.lock();
        let due = tasks.due_by(now, claim);
        let claimed = due.iter().filter_map(|id| {
            tasks.change(id, |row| {
                // Whoever had it has not renewed its lease: that worker is lost.
                let lost = row.owner.is_some();
                row.crashes += u32::from(lost);
                let begun = std::mem::replace(&mut row.begun, true);
                if row.phase != Phase::Ended {
                    row.phase = Phase::Running;
                }
                row.owner = Some(worker.clone());
                row.epoch += 1;
                row.due = Some(now.saturating_add(millis(lease)));
                Claimed {
                    lease: Lease { task: id.clone(), worker: worker.clone(), epoch: row.epoch },
                    principal: row.principal.clone(),
                    kind: row.kind.clone(),
                    request: row.request.clone(),
                    journal: row.journal(),
                    begun,
                    crashes: row.crashes,
                    lost,
                    cancel_requested: row.cancel_requested.is_some(),
                    progress: row.progress.clone(),
                    ended: row.outcome.clone(),
                }
            })
        });
        done(Ok(claimed.collect()))
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> Answer<'a, Vec<Lease>> {
        let now = self.now();
        let mut tasks = self.lock();
        let owned = tasks.owned_by(worker);
        let held = owned.into_iter().filter_map(|id| {
            let epoch = tasks.change(&id, |row| {
                row.due = Some(now.saturating_add(millis(lease)));
                row.epoch
            })?;
            Some(Lease { task: id, worker: worker.clone(), epoch })
        });
        done(Ok(held.collect()))
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> Answer<'a, ()> {
        let now = self.now();
        let mut tasks = self.lock();
        let released = tasks.owned_by(worker);
        for id in &released {
            tasks.change(id, |row| {
                if row.phase == Phase::Running {
                    row.phase = Phase::Queued;
                }
                row.owner = None;
                row.due = Some(now);
            });
        }
        drop(tasks);
        released.iter().for_each(|id| self.tell(id, By::Anybody));
        done(Ok(()))
    }

    fn write<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Then,
    ) -> Answer<'a, ()> {
        let now = self.now();
        let mut tasks = self.lock();
        if tasks.get(&lease.task).is_none_or(|row| !row.is_held_by(lease)) {
            return done(Err(StoreError::Lost));
        }
        if !tasks.has_room(lease, changes, then) {
            return done(Err(StoreError::OverBytes));
        }
        let is_seen = changes.are_seen() || !matches!(then, Then::GoOn);
        tasks.change(&lease.task, |row| {
            // A task that only waits does not change when its worker parks it.
            if !(changes.is_empty() && matches!(then, Then::Park { .. })) {
                row.apply(changes.clone(), now);
            }
            match then {
                Then::GoOn => {}
                Then::Park { due, seen } => row.park(*due, *seen, now),
                Then::Keep { outcome, hold } => row.keep(outcome.clone(), *hold, now),
                Then::End { outcome, retention } => {
                    // Its run is gone: nobody waits for that.
                    row.due = Some(now);
                    row.end(outcome.clone(), *retention, now);
                }
            }
        });
        drop(tasks);
        if is_seen {
            self.tell(&lease.task, By::Worker);
        }
        done(Ok(()))
    }

    fn clean_up<'a>(&'a self, lease: &'a Lease, now: Cleaning) -> Answer<'a, ()> {
        let time = self.now();
        let mut tasks = self.lock();
        if tasks.get(&lease.task).is_none_or(|row| !row.is_owed(lease, now)) {
            return done(Err(StoreError::Lost));
        }
        tasks.change(&lease.task, |row| {
            row.owner = None;
            row.due = (now == Cleaning::Due).then_some(time);
        });
        drop(tasks);
        if now == Cleaning::Due {
            self.tell(&lease.task, By::Anybody);
        }
        done(Ok(()))
    }

    fn heard<'a>(&'a self, lease: &'a Lease) -> Answer<'a, Heard> {
        let tasks = self.lock();
        let row = tasks.get(&lease.task).filter(|row| row.is_held_by(lease));
        done(row.map(Row::heard).ok_or(StoreError::Lost))
    }

    fn answer<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: Answerer,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> Answer<'a, Option<usize>> {
        let now = self.now();
        let mut tasks = self.lock();
        let Some(row) = tasks.get(task).filter(|row| row.principal == principal) else {
            return done(Ok(None));
        };
        if !tasks.has_room_for(row.growth_of_answers(from, &answers), principal, max_bytes) {
            return done(Err(StoreError::OverBytes));
        }
        let taken = tasks.change(task, |row| match row.phase {
            Phase::Ended => 0,
            _ => row.take_answers(from, answers, now),
        });
        drop(tasks);
        if taken.is_some_and(|taken| taken > 0) {
            self.tell(task, By::Anybody);
        }
        done(Ok(taken))
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> Answer<'a, Option<Cancelled>> {
        let now = self.now();
        let mut tasks = self.lock();
        if tasks.get(task).is_none_or(|row| row.principal != principal) {
            return done(Ok(None));
        }
        let cancelled = tasks.change(task, |row| match row.phase {
            Phase::Ended => Cancelled::Before,
            Phase::Running if !at_once => {
                row.cancel_requested.get_or_insert(now);
                row.touch(now);
                Cancelled::Requested
            }
            _ => {
                row.cancel_requested.get_or_insert(now);
                row.end(TaskOutcome::Cancelled, retention, now);
                Cancelled::Ended
            }
        });
        drop(tasks);
        if cancelled != Some(Cancelled::Before) {
            self.tell(task, By::Anybody);
        }
        done(Ok(cancelled))
    }

    fn sweep(&self, limit: usize, retention: Duration) -> Answer<'_, Swept> {
        let now = self.now();
        let mut swept = Swept::default();
        let mut tasks = self.lock();
        let over = || tasks.over_by(now);
        let has_ended = |(id, row): (&TaskId, &Row)| match row.phase {
            Phase::Ended => Ok(id.clone()),
            _ => Err((row.principal.clone(), id.clone())),
        };
        let purged: Vec<TaskId> =
            over().filter_map(|over| has_ended(over).ok()).take(limit).collect();
        let ended: Vec<_> = over().filter_map(|over| has_ended(over).err()).take(limit).collect();
        tasks.forget(&purged);
        swept.purged = purged.len();
        swept.more = purged.len() == limit || ended.len() == limit;
        for (principal, id) in ended {
            let kept = tasks.change(&id, |row| {
                let kept = row.kept.clone();
                let is_kept = kept.is_some();
                row.end(kept.unwrap_or(TaskOutcome::Expired), retention, now);
                is_kept
            });
            match kept {
                Some(true) => swept.failed.push((principal, id)),
                _ => swept.expired.push((principal, id)),
            }
        }
        drop(tasks);
        let ended = swept.expired.iter().chain(&swept.failed);
        ended.for_each(|(_, id)| self.tell(id, By::Anybody));
        for (key, note) in locked(&self.notes).sweep(now) {
            self.discharge(&key, note);
        }
        locked(&self.events).sweep(now);
        done(Ok(swept))
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> Answer<'a, Option<RawJson>> {
        done(self.put(key, note, ttl, false, charge))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> Answer<'a, ()> {
        done(self.put(key, note, ttl, true, charge).map(drop))
    }

    fn kept<'a>(&'a self, key: &'a str) -> Answer<'a, Option<RawJson>> {
        done(Ok(locked(&self.notes).kept(key, self.now())))
    }

    fn forget<'a>(&'a self, key: &'a str) -> Answer<'a, ()> {
        let gone = locked(&self.notes).forget(key);
        if let Some(note) = gone {
            self.discharge(key, note);
        }
        done(Ok(()))
    }

    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> Answer<'_, ()> {
        locked(&self.events).record(events, (self.now(), millis(retention)), max_events);
        done(Ok(()))
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> Answer<'a, Vec<Audit>> {
        done(Ok(locked(&self.events).after(task, after, limit)))
    }

    fn census(&self) -> Answer<'_, Census> {
        let now = self.now();
        let tasks = self.lock();
        let due = tasks.next_due(&[]);
        done(Ok(Census {
            queued: tasks.count(Phase::Queued),
            running: tasks.count(Phase::Running),
            parked: tasks.count(Phase::Parked),
            kept: tasks.count(Phase::Kept),
            ended: tasks.count(Phase::Ended),
            bytes: tasks.all_bytes() as u64,
            waiting: due.and_then(|due| now.checked_sub(due)).map(Duration::from_millis),
        }))
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> Answer<'a, u64> {
        done(Ok(self.lock().bytes(principal) as u64))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> Answer<'a, Option<Duration>> {
        let now = self.now();
        let due = self.lock().next_due(except);
        done(Ok(due.map(|due| Duration::from_millis(due.saturating_sub(now)))))
    }

    fn listen(&self, listener: Listener) {
        locked(&self.listeners).push(listener);
    }
}

fn done<'a, T: Send + 'a>(result: Result<T, StoreError>) -> Answer<'a, T> {
    Box::pin(ready(result))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore")
            .field("tasks", &self.lock().iter().count())
            .finish_non_exhaustive()
    }
}

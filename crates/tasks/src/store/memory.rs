//! A store that forgets everything when the process ends. For tests, and for servers whose tasks
//! may be lost with them; it has to be asked for by name.

mod key_value;
mod operator;
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
    key_value::{Events, Notes},
    row::Row,
    table::Tasks,
};
use super::{
    AuditEvent, AuditRecord, CancelOutcome, ChangeListener, ChangeSource, Changes, Charge, Claim,
    ClaimedTask, CleanupState, CreateOutcome, IdempotencyKey, Inbox, InputSource, Lease,
    ListCursor, NewTask, PageLimit, Phase, Store, StoreError, StoreFuture, StoreStats,
    StoredSegments, SweepReport, TaskId, TaskOutcome, TaskRecord, Transition, UnixMillis, WorkerId,
    budget, lifetime::Lifetime,
};

/// Keeps tasks in memory.
#[derive(Default)]
pub struct MemoryStore {
    // A std mutex: nothing awaits while it is held.
    tasks: Mutex<Tasks>,
    notes: Mutex<Notes>,
    events: Mutex<Events>,
    listeners: Mutex<Vec<ChangeListener>>,
    /// How far a test has moved time.
    shifted: AtomicU64,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the store's time, for tests.
    pub fn advance_clock(&self, span: Duration) {
        self.shifted.fetch_add(span.as_millis() as u64, Ordering::Relaxed);
    }

    fn now(&self) -> UnixMillis {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        wall.as_millis() as u64 + self.shifted.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        locked(&self.tasks)
    }

    fn tell(&self, task: &TaskId, by: ChangeSource) {
        let listeners = locked(&self.listeners).clone();
        listeners.iter().for_each(|listener| listener(task, by));
    }
}

impl Store for MemoryStore {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        let now = self.now();
        let mut tasks = self.lock();
        if let Some(once) = &task.idempotency
            && let Some(before) = tasks.made(&task.principal, once)
        {
            return done(Ok(before));
        }
        if let Some(row) = tasks.get(&task.id) {
            // Asked for again, because nobody knew whether it had been made.
            return done(match row.principal == task.principal {
                true => Ok(CreateOutcome::Existing(task.id)),
                false => Err(StoreError::Unavailable("the name of the task is taken".to_owned())),
            });
        }
        if tasks.open(&task.principal) >= task.quota {
            return done(Ok(CreateOutcome::QuotaExceeded));
        }
        let bytes = budget::new_task(&task);
        if (tasks.bytes(&task.principal) + bytes) as u64 > task.max_bytes {
            return done(Ok(CreateOutcome::OverBytes));
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
                kind: task.tool,
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
                once: task.idempotency,
            },
        );
        drop(tasks);
        if lease.is_none() {
            self.tell(&id, ChangeSource::Other);
        }
        done(Ok(CreateOutcome::Created { lease, at: now }))
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        done(Ok(self.lock().made(principal, once)))
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        let tasks = self.lock();
        let row = tasks.get(task).filter(|row| row.principal == principal);
        done(Ok(row.map(|row| row.view(task))))
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        let tasks = self.lock();
        let row = tasks.get(task).filter(|row| row.principal == principal);
        done(Ok(row.map(|row| row.segments(after, limit))))
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        let tasks = self.lock();
        let listed = tasks.listed(principal, origin, after).take(limit);
        done(Ok(listed.map(|(id, row)| row.view(id)).collect()))
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
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
                ClaimedTask {
                    lease: Lease { task: id.clone(), worker: worker.clone(), epoch: row.epoch },
                    principal: row.principal.clone(),
                    tool: row.kind.clone(),
                    request: row.request.clone(),
                    journal: row.journal(),
                    started: begun,
                    crash_count: row.crashes,
                    lost,
                    cancel_requested: row.cancel_requested.is_some(),
                    progress: row.progress.clone(),
                    ended: row.outcome.clone(),
                }
            })
        });
        done(Ok(claimed.collect()))
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
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

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
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
        released.iter().for_each(|id| self.tell(id, ChangeSource::Other));
        done(Ok(()))
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        let now = self.now();
        let mut tasks = self.lock();
        if tasks.get(&lease.task).is_none_or(|row| !row.is_held_by(lease)) {
            return done(Err(StoreError::LeaseLost));
        }
        if !tasks.has_room(lease, changes, then) {
            return done(Err(StoreError::OverBytes));
        }
        let is_seen = changes.is_visible() || !matches!(then, Transition::Continue);
        tasks.change(&lease.task, |row| {
            // A task that only waits does not change when its worker parks it.
            if !(changes.is_empty() && matches!(then, Transition::Park { .. })) {
                row.apply(changes.clone(), now);
            }
            match then {
                Transition::Continue => {}
                Transition::Park { due, seen } => row.park(*due, *seen, now),
                Transition::Quarantine { outcome, hold } => row.keep(outcome.clone(), *hold, now),
                Transition::End { outcome, retention } => {
                    // Its run is gone: nobody waits for that.
                    row.due = Some(now);
                    row.end(outcome.clone(), *retention, now);
                }
            }
        });
        drop(tasks);
        if is_seen {
            self.tell(&lease.task, ChangeSource::Worker);
        }
        done(Ok(()))
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        let time = self.now();
        let mut tasks = self.lock();
        if tasks.get(&lease.task).is_none_or(|row| !row.is_owed(lease, now)) {
            return done(Err(StoreError::LeaseLost));
        }
        tasks.change(&lease.task, |row| {
            row.owner = None;
            row.due = (now == CleanupState::Due).then_some(time);
        });
        drop(tasks);
        if now == CleanupState::Due {
            self.tell(&lease.task, ChangeSource::Other);
        }
        done(Ok(()))
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        let tasks = self.lock();
        let row = tasks.get(&lease.task).filter(|row| row.is_held_by(lease));
        done(row.map(Row::heard).ok_or(StoreError::LeaseLost))
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
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
            self.tell(task, ChangeSource::Other);
        }
        done(Ok(taken))
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        let now = self.now();
        let mut tasks = self.lock();
        if tasks.get(task).is_none_or(|row| row.principal != principal) {
            return done(Ok(None));
        }
        let cancelled = tasks.change(task, |row| match row.phase {
            Phase::Ended => CancelOutcome::AlreadyEnded,
            Phase::Running if !at_once => {
                row.cancel_requested.get_or_insert(now);
                row.touch(now);
                CancelOutcome::Requested
            }
            _ => {
                row.cancel_requested.get_or_insert(now);
                row.end(TaskOutcome::Cancelled, retention, now);
                CancelOutcome::Cancelled
            }
        });
        drop(tasks);
        if cancelled != Some(CancelOutcome::AlreadyEnded) {
            self.tell(task, ChangeSource::Other);
        }
        done(Ok(cancelled))
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        let now = self.now();
        let mut swept = SweepReport::default();
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
        ended.for_each(|(_, id)| self.tell(id, ChangeSource::Other));
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
    ) -> StoreFuture<'a, Option<RawJson>> {
        done(self.put(key, note, ttl, false, charge))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        done(self.put(key, note, ttl, true, charge).map(drop))
    }

    fn kept<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        done(Ok(locked(&self.notes).kept(key, self.now())))
    }

    fn forget<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
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
    ) -> StoreFuture<'_, ()> {
        locked(&self.events).record(events, (self.now(), millis(retention)), max_events);
        done(Ok(()))
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        done(Ok(locked(&self.events).after(task, after, limit)))
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        let now = self.now();
        let tasks = self.lock();
        let due = tasks.next_due(&[]);
        done(Ok(StoreStats {
            queued: tasks.count(Phase::Queued),
            running: tasks.count(Phase::Running),
            parked: tasks.count(Phase::Parked),
            quarantined: tasks.count(Phase::Quarantined),
            ended: tasks.count(Phase::Ended),
            bytes: tasks.all_bytes() as u64,
            oldest_due: due.and_then(|due| now.checked_sub(due)).map(Duration::from_millis),
        }))
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        done(Ok(self.lock().bytes(principal) as u64))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let now = self.now();
        let due = self.lock().next_due(except);
        done(Ok(due.map(|due| Duration::from_millis(due.saturating_sub(now)))))
    }

    fn subscribe(&self, listener: ChangeListener) {
        locked(&self.listeners).push(listener);
    }
}

fn done<'a, T: Send + 'a>(result: Result<T, StoreError>) -> StoreFuture<'a, T> {
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

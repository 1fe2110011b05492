//! [`WorkQueue`] of the memory store.

use std::time::Duration;

use super::{
    row::Row,
    state::{MemoryStore, done, locked},
};
use crate::{
    store::{
        ChangeListener, ChangeSource, Changes, Claim, ClaimedTask, CleanupState, Inbox, Lease,
        Phase, StoreError, StoreFuture, StoreKind, SweepReport, TaskId, TaskOutcome, Transition,
        WorkQueue, WorkerId, commit_span::commit_span,
    },
    time::millis,
};

impl WorkQueue for MemoryStore {
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
                // A due task with a worker means that the worker did not renew its lease, which
                // counts as a crash.
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
        released.iter().for_each(|id| self.notify(id, ChangeSource::Other));
        done(Ok(()))
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        let _span = commit_span(StoreKind::Memory, changes, then).entered();
        let now = self.now();
        let mut tasks = self.lock();
        if tasks.get(&lease.task).is_none_or(|row| !row.is_held_by(lease)) {
            return done(Err(StoreError::LeaseLost));
        }
        if !tasks.has_room(lease, changes, then) {
            return done(Err(StoreError::BytesExceeded));
        }
        let is_seen = changes.is_visible() || !matches!(then, Transition::Continue);
        tasks.change(&lease.task, |row| {
            // Parking does not change the visible state of a task that only waits.
            if !(changes.is_empty() && matches!(then, Transition::Park { .. })) {
                row.apply(changes.clone(), now);
            }
            match then {
                Transition::Continue => {}
                Transition::Park { due_at: due, responses_seen: seen } => {
                    row.park(*due, *seen, now)
                }
                Transition::Quarantine { outcome, ttl } => row.keep(outcome.clone(), *ttl, now),
                Transition::End { outcome, retention } => {
                    // The worker ends the task, so its run is gone and a cleanup is due
                    // immediately.
                    row.due = Some(now);
                    row.end(outcome.clone(), *retention, now);
                }
            }
        });
        drop(tasks);
        if is_seen {
            self.notify(&lease.task, ChangeSource::Worker);
        }
        done(Ok(()))
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        let tasks = self.lock();
        let row = tasks.get(&lease.task).filter(|row| row.is_held_by(lease));
        done(row.map(Row::heard).ok_or(StoreError::LeaseLost))
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
            self.notify(&lease.task, ChangeSource::Other);
        }
        done(Ok(()))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let now = self.now();
        let due = self.lock().next_due(except);
        done(Ok(due.map(|due| Duration::from_millis(due.saturating_sub(now)))))
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
        let over = ended.len();
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
        let resolved = tasks.cancel_abandoned(limit, retention, now, &mut swept);
        swept.more = [purged.len(), over, resolved].contains(&limit);
        tasks.deliveries.sweep(now);
        tasks.audit_events.sweep(now);
        drop(tasks);
        let ended = swept.expired.iter().chain(&swept.failed).map(|(_, id)| id);
        let cancelled = swept.abandoned.iter().map(|(_, id, _)| id);
        ended.chain(cancelled).for_each(|id| self.notify(id, ChangeSource::Other));
        for (key, entry) in locked(&self.key_values).sweep(now) {
            self.discharge(&key, entry);
        }
        done(Ok(swept))
    }

    fn subscribe(&self, listener: ChangeListener) {
        locked(&self.listeners).push(listener);
    }
}

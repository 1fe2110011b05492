//! [`TaskStore`] of the memory store.

use std::time::Duration;

use outlive_wire::RawJson;

use super::{
    row::Row,
    state::{MemoryStore, done},
};
use crate::store::{
    CancelOutcome, ChangeSource, CreateOutcome, IdempotencyKey, InputSource, Lease, ListCursor,
    NewTask, PageLimit, Phase, StoreError, StoreFuture, StoredSegments, TaskId, TaskRecord,
    TaskStore, budget,
};

impl TaskStore for MemoryStore {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        let now = self.now();
        let mut tasks = self.lock();
        if let Some(once) = &task.idempotency
            && let Some(before) = tasks.made(&task.principal, once)
        {
            return done(Ok(before));
        }
        if let Some(row) = tasks.get(&task.id) {
            // The server repeats a creation whose outcome it did not receive.
            return done(match row.principal == task.principal {
                true => Ok(CreateOutcome::Existing(task.id)),
                false => Err(StoreError::Unavailable(
                    "the task ID belongs to another principal".to_owned(),
                )),
            });
        }
        if tasks.open(&task.principal) >= task.quota {
            return done(Ok(CreateOutcome::QuotaExceeded));
        }
        let bytes = budget::new_task(&task);
        if (tasks.bytes(&task.principal) + bytes) as u64 > task.max_bytes {
            return done(Ok(CreateOutcome::BytesExceeded));
        }
        let id = task.id.clone();
        if let Some(bridge) = &task.bridge {
            tasks.calls.insert(&id, &task.principal, bridge.clone(), now);
        }
        let row = Row::new(task, now, bytes);
        let lease = row.owner.clone().map(|worker| Lease { task: id.clone(), worker, epoch: 1 });
        tasks.insert(id.clone(), row);
        drop(tasks);
        if lease.is_none() {
            self.notify(&id, ChangeSource::Other);
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

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        let tasks = self.lock();
        let listed = tasks.listed(principal, origin, after);
        let listed = listed.filter(|(_, row)| row.acknowledged).take(limit);
        done(Ok(listed.map(|(id, row)| row.view(id)).collect()))
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
            return done(Err(StoreError::BytesExceeded));
        }
        let taken = tasks.change(task, |row| match row.phase {
            Phase::Ended => 0,
            _ => row.take_answers(from, answers, now),
        });
        drop(tasks);
        if taken.is_some_and(|taken| taken > 0) {
            self.notify(task, ChangeSource::Other);
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
            _ => row.cancel(at_once, retention, now),
        });
        drop(tasks);
        if cancelled != Some(CancelOutcome::AlreadyEnded) {
            self.notify(task, ChangeSource::Other);
        }
        done(Ok(cancelled))
    }
}

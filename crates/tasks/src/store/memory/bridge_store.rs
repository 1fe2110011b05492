//! [`BridgeStore`] of the memory store.

use std::time::Duration;

use super::{
    row::Row,
    state::{MemoryStore, done},
    table::Tasks,
};
use crate::store::{
    Attended, BridgeStore, CancelOutcome, Departure, Joined, OpenCall, Phase, StoreFuture,
    SweepReport, TaskId, UnixMillis, WorkerId, bridge::MAX_EVICTED,
};

impl BridgeStore for MemoryStore {
    fn join<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        fingerprint: &'a str,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Joined> {
        let now = self.now();
        let mut tasks = self.lock();
        done(Ok(match tasks.joinable(principal, scope, fingerprint, now) {
            Some((at, _)) if at > now => Joined::Returning(Duration::from_millis(at - now)),
            Some((_, task)) => {
                let task = task.clone();
                tasks.attend(principal, &task, worker).map_or(Joined::Nothing, Joined::Run)
            }
            None => Joined::Nothing,
        }))
    }

    fn attend<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Option<Attended>> {
        done(Ok(self.lock().attend(principal, task, worker)))
    }

    fn leave<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
        how: Departure,
    ) -> StoreFuture<'a, ()> {
        let now = self.now();
        let mut tasks = self.lock();
        let is_known = tasks.get(task).is_some_and(|row| row.acknowledged);
        let left = tasks.calls.change(principal, task, |call| {
            call.attendance.leave(worker, how, is_known, now);
        });
        if left.is_some() && how == Departure::PendingResult {
            tasks.change(task, |row| row.acknowledged = true);
        }
        done(Ok(()))
    }

    fn deliver<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        retention: Option<Duration>,
    ) -> StoreFuture<'a, ()> {
        let now = self.now();
        let mut tasks = self.lock();
        let delivered = tasks.calls.change(principal, task, |call| call.deliver(now));
        if let (Some(()), Some(retention)) = (delivered, retention) {
            tasks.change(task, |row| row.limit_retention(retention, now));
        }
        done(Ok(()))
    }

    fn open_calls<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<OpenCall>> {
        let tasks = self.lock();
        let newest = tasks.calls.open(principal, scope).rev();
        let open = newest.filter_map(|(task, _)| {
            let row = tasks.get(task)?;
            Some(OpenCall::new(task.clone(), row.kind.as_str(), row.created))
        });
        done(Ok(open.take(limit).collect()))
    }

    fn evict<'a>(&'a self, principal: &'a str, bytes: u64) -> StoreFuture<'a, u64> {
        let mut tasks = self.lock();
        let (mut freed, mut evicted) = (0, Vec::new());
        for task in tasks.calls.delivered(principal) {
            if freed >= bytes || evicted.len() == MAX_EVICTED {
                break;
            }
            if let Some(row) = tasks.get(task).filter(|row| row.is_over()) {
                freed += row.bytes as u64;
                evicted.push(task.clone());
            }
        }
        tasks.forget(&evicted);
        done(Ok(freed))
    }
}

impl Tasks {
    /// Returns the oldest run that an equal call can join, or else the first that it can join later,
    /// and the time from which it can.
    fn joinable(
        &self,
        principal: &str,
        scope: &str,
        fingerprint: &str,
        now: UnixMillis,
    ) -> Option<(UnixMillis, &TaskId)> {
        let equal = self.calls.open(principal, scope).filter_map(|(task, call)| {
            let at = call.joinable_at(fingerprint)?;
            self.get(task).is_some_and(Row::is_joinable).then_some((at.max(now), task))
        });
        // Of several minimums, the first is the oldest.
        equal.min_by_key(|(at, _)| *at)
    }

    fn attend(&mut self, principal: &str, task: &TaskId, worker: &WorkerId) -> Option<Attended> {
        self.calls.change(principal, task, |call| call.attend(task, worker))
    }

    /// Cancels the abandoned tasks, and adds them to the report. Returns the number of calls whose
    /// timeout is resolved.
    pub(super) fn cancel_abandoned(
        &mut self,
        limit: usize,
        retention: Duration,
        now: UnixMillis,
        swept: &mut SweepReport,
    ) -> usize {
        let due = self.calls.abandoned_by(now, limit);
        let due: Vec<_> = due.map(|(owner, task)| (owner.to_owned(), task.clone())).collect();
        let mut resolved = 0;
        for (principal, task) in due {
            if self.get(&task).is_some_and(Row::requires_input) {
                self.calls.change(&principal, &task, |call| {
                    call.attendance.restart_abandonment(now);
                });
                continue;
            }
            resolved += 1;
            self.calls.change(&principal, &task, |call| call.attendance.abandon_at = None);
            let cancelled = self.change(&task, |row| match row.phase {
                Phase::Ended => CancelOutcome::AlreadyEnded,
                _ => row.cancel(false, retention, now),
            });
            if let Some(how @ (CancelOutcome::Cancelled | CancelOutcome::Requested)) = cancelled {
                swept.abandoned.push((principal, task, how));
            }
        }
        resolved
    }
}

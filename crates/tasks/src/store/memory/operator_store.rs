//! [`OperatorStore`] of the memory store.

use outlive_wire::RawJson;

use super::{
    input_row::InputRow,
    row::Row,
    state::{MemoryStore, done, locked},
};
use crate::store::{
    ChangeSource, ListCursor, OperatorStore, Phase, PurgeOutcome, RetryOutcome, StoreFuture,
    TaskDetail, TaskFilter, TaskId, TaskSummary, UnixMillis,
};

impl OperatorStore for MemoryStore {
    fn tasks<'a>(
        &'a self,
        filter: &'a TaskFilter,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskSummary>> {
        let tasks = self.lock();
        let mut rows: Vec<(&TaskId, &Row)> = tasks
            .iter()
            .filter(|(id, row)| {
                let is_before =
                    |after: &ListCursor| (row.created, *id) < (after.created, &after.id);
                row.fits(filter) && after.is_none_or(is_before)
            })
            .collect();
        rows.sort_by_key(|(id, row)| std::cmp::Reverse((row.created, (*id).clone())));
        done(Ok(rows.into_iter().take(limit).map(|(id, row)| row.overseen(id)).collect()))
    }

    fn inspect<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<TaskDetail>> {
        done(Ok(self.lock().get(task).map(|row| row.inspected(task))))
    }

    fn retry<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<RetryOutcome>> {
        let now = self.now();
        let mut tasks = self.lock();
        let Some(row) = tasks.get(task) else { return done(Ok(None)) };
        if row.phase != Phase::Quarantined {
            return done(Ok(Some(RetryOutcome::NotQuarantined(row.phase))));
        }
        let principal = row.principal.clone();
        tasks.change(task, |row| row.retry(now));
        drop(tasks);
        self.notify(task, ChangeSource::Other);
        done(Ok(Some(RetryOutcome::Queued(principal))))
    }

    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> StoreFuture<'a, Option<PurgeOutcome>> {
        let mut tasks = self.lock();
        let Some(row) = tasks.get(task) else { return done(Ok(None)) };
        let purged = match row.phase {
            phase if phase != Phase::Ended && !force => {
                return done(Ok(Some(PurgeOutcome::NotEnded(phase))));
            }
            _ if row.is_owed_clean_up() && !force => {
                return done(Ok(Some(PurgeOutcome::CleanupPending)));
            }
            phase => PurgeOutcome::Purged(row.principal.clone(), phase),
        };
        tasks.forget([task]);
        drop(tasks);
        self.notify(task, ChangeSource::Other);
        done(Ok(Some(purged)))
    }

    fn purge_ended(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(String, TaskId)>> {
        let mut tasks = self.lock();
        let is_old = |row: &Row| {
            row.phase == Phase::Ended && row.updated < before && !row.is_owed_clean_up()
        };
        let old = tasks.iter().filter(|(_, row)| is_old(row)).take(limit);
        let old: Vec<_> = old.map(|(id, row)| (row.principal.clone(), id.clone())).collect();
        tasks.forget(old.iter().map(|(_, id)| id));
        done(Ok(old))
    }

    fn key_values<'a>(
        &'a self,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, RawJson)>> {
        let mut found = locked(&self.key_values).starting_with(prefix, self.now());
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        found.truncate(limit);
        done(Ok(found))
    }
}

impl Row {
    fn fits(&self, filter: &TaskFilter) -> bool {
        let TaskFilter { phase, outcome, tool: kind, principal, before } = filter;
        phase.is_none_or(|phase| phase == self.phase)
            && outcome.is_none_or(|kind| self.outcome.as_ref().is_some_and(|it| it.kind() == kind))
            && kind.as_ref().is_none_or(|kind| *kind == self.kind)
            && principal.as_ref().is_none_or(|principal| *principal == self.principal)
            && before.is_none_or(|before| self.created < before)
    }

    /// Returns whether a cleanup is pending. An ended task is due only for its cleanup.
    fn is_owed_clean_up(&self) -> bool {
        self.phase == Phase::Ended && self.due.is_some()
    }

    pub(super) fn overseen(&self, id: &TaskId) -> TaskSummary {
        TaskSummary {
            view: self.view(id),
            principal: self.principal.clone(),
            owner: self.owner.clone(),
            epoch: self.epoch,
            started: self.begun,
            crash_count: self.crashes,
            due_at: self.due,
            kept: self.kept.clone(),
        }
    }

    fn inspected(&self, id: &TaskId) -> TaskDetail {
        TaskDetail {
            task: self.overseen(id),
            request: self.request.clone(),
            entries: self.journal.entries.clone(),
            input_requests: self.input_requests.iter().map(InputRow::to_record).collect(),
            segments: self.journal.segments.len() as u64,
            person: self.person.clone(),
            rerun_of: self.rerun_of.clone(),
            tags: self.tags.iter().cloned().collect(),
        }
    }
}

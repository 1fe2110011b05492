//! The operations that share one commit, and their counts.

use rusqlite::Connection;

use super::{
    column::count, error::SqliteError, phase_counts::Moves, principal_quota::PrincipalQuotas,
    state::File,
};
use crate::store::{ChangeSource, CreateOutcome, TaskId};

/// What operations of one commit work on.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Connection,
    pub(super) file: &'a File,
    pub(super) changed: Vec<Changed>,
    pub(super) counts: Counts,
}

/// What is counted for all operations of a commit, and written at its end.
#[derive(Clone, Default)]
pub(super) struct Counts {
    pub(super) moves: Moves,
    pub(super) open: PrincipalQuotas,
}

/// A task that was changed.
pub(super) struct Changed {
    pub(super) number: i64,
    pub(super) task: TaskId,
    pub(super) by: ChangeSource,
}

impl Batch<'_> {
    pub(super) fn now(&self) -> i64 {
        self.file.clock.now()
    }

    /// Notes that a task has changed; whoever listens hears of it once that is committed.
    pub(super) fn changed(&mut self, number: i64, task: &TaskId, by: ChangeSource) {
        self.changed.push(Changed { number, task: task.clone(), by });
    }

    /// Notes that tasks have come into a phase, or with a number below zero have left it.
    pub(super) fn count(&mut self, phase: i64, tasks: i64) {
        self.counts.moves.count(phase, tasks);
    }

    /// Notes that a task has gone from one phase to another.
    pub(super) fn moved(&mut self, from: i64, to: i64) {
        self.count(from, -1);
        self.count(to, 1);
    }

    /// A principal has one task more that has not ended, and so many bytes more; or why it may not.
    pub(super) fn count_in(
        &mut self,
        principal: &str,
        bytes: usize,
        limits: (usize, u64),
    ) -> Result<Option<CreateOutcome>, SqliteError> {
        let refused = self.counts.open.count_in(self.connection, principal, bytes, limits)?;
        if refused.is_none() {
            self.counts.moves.count_bytes(count(bytes));
        }
        Ok(refused)
    }

    /// A principal has stored so many bytes more, or less.
    pub(super) fn count_bytes(&mut self, principal: &str, bytes: i64) -> Result<(), SqliteError> {
        self.counts.moves.count_bytes(bytes);
        self.counts.open.count_bytes(self.connection, principal, bytes)
    }

    /// How many bytes a principal has stored, those of this commit included.
    pub(super) fn stored_bytes(&mut self, principal: &str) -> Result<i64, SqliteError> {
        self.counts.open.stored_bytes(self.connection, principal)
    }

    /// A principal has one task less that has not ended.
    pub(super) fn count_out(&mut self, principal: &str) -> Result<(), SqliteError> {
        self.counts.open.count_out(self.connection, principal)
    }
}

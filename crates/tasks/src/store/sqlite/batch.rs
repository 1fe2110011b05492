//! [`Batch`]: the operations of one group commit, and their counts.

use rusqlite::Connection;

use super::{
    column::count, error::SqliteError, phase_counts::Moves, principal_quota::PrincipalQuotas,
    state::File,
};
use crate::store::{ChangeSource, CreateOutcome, TaskId};

/// Context of the operations in one group commit.
pub(super) struct Batch<'a> {
    pub(super) connection: &'a Connection,
    pub(super) file: &'a File,
    pub(super) changed: Vec<Changed>,
    pub(super) counts: Counts,
}

/// Counts that are written once, at the end of a group commit.
#[derive(Clone, Default)]
pub(super) struct Counts {
    pub(super) moves: Moves,
    pub(super) open: PrincipalQuotas,
}

/// A changed task.
pub(super) struct Changed {
    pub(super) number: i64,
    pub(super) task: TaskId,
    pub(super) by: ChangeSource,
}

impl Batch<'_> {
    pub(super) fn now(&self) -> i64 {
        self.file.clock.now()
    }

    /// Records that a task has changed. Listeners are notified after the commit.
    pub(super) fn changed(&mut self, number: i64, task: &TaskId, by: ChangeSource) {
        self.changed.push(Changed { number, task: task.clone(), by });
    }

    /// Adds to the number of tasks in a phase. `tasks` may be negative.
    pub(super) fn count(&mut self, phase: i64, tasks: i64) {
        self.counts.moves.count(phase, tasks);
    }

    /// Counts the move of a task from one phase to another.
    pub(super) fn moved(&mut self, from: i64, to: i64) {
        self.count(from, -1);
        self.count(to, 1);
    }

    /// Counts one more open task and its bytes for a principal. Returns the outcome if a limit is
    /// exceeded.
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

    /// Adds to the stored bytes of a principal. `bytes` may be negative.
    pub(super) fn count_bytes(&mut self, principal: &str, bytes: i64) -> Result<(), SqliteError> {
        self.counts.moves.count_bytes(bytes);
        self.counts.open.count_bytes(self.connection, principal, bytes)
    }

    /// Returns the stored bytes of a principal, including those of this commit.
    pub(super) fn stored_bytes(&mut self, principal: &str) -> Result<i64, SqliteError> {
        self.counts.open.stored_bytes(self.connection, principal)
    }

    /// Counts one open task of a principal less.
    pub(super) fn count_out(&mut self, principal: &str) -> Result<(), SqliteError> {
        self.counts.open.count_out(self.connection, principal)
    }
}

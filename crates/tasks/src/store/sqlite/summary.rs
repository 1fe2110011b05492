//! Tasks as operators see them.

use rusqlite::Row;

use super::{clock::from_column, column::from_json, error::SqliteError, read::Seen};
use crate::store::{TaskSummary, WorkerId};

/// Selects the columns of a [`Watched`], and then those of `more`.
macro_rules! overseen {
    ($more:literal, $which:literal) => {
        $crate::store::sqlite::read::seen!(
            ", principal, worker_id, epoch, started, crash_count, due_at, CASE phase WHEN 4 THEN quarantine_outcome END",
            $more,
            " FROM task ",
            $which
        )
    };
}
pub(super) use overseen;

/// First column after those of a [`Watched`].
pub(super) const MORE: usize = 20;

/// Row of a task with the columns for operators.
pub(super) struct Watched {
    seen: Seen,
    principal: String,
    owner: Option<String>,
    epoch: i64,
    begun: bool,
    crashes: u32,
    due: Option<i64>,
    kept: Option<String>,
}

impl Watched {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seen: Seen::read(row)?,
            principal: row.get(13)?,
            owner: row.get(14)?,
            epoch: row.get(15)?,
            begun: row.get(16)?,
            crashes: row.get(17)?,
            due: row.get(18)?,
            kept: row.get(19)?,
        })
    }

    pub(super) fn overseen(self) -> Result<TaskSummary, SqliteError> {
        Ok(TaskSummary {
            view: self.seen.view()?,
            principal: self.principal,
            owner: self.owner.map(WorkerId::new),
            epoch: from_column(self.epoch),
            started: self.begun,
            crash_count: self.crashes,
            due_at: self.due.map(from_column),
            kept: self.kept.map(|kept| from_json("outcome", &kept)).transpose()?,
        })
    }
}

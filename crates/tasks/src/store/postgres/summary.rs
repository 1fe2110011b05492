//! Summaries of tasks, for operators and lists.

use tokio_postgres::Row;

use super::{
    clock::from_column,
    column::{from_json, get, name, optional_name},
    error::PostgresError,
    read::seen_in,
};
use crate::store::{TaskSummary, WorkerId};

/// Returns the columns of a summary that follow those of a record.
macro_rules! summary {
    () => {
        ", principal, worker_id, epoch, started, crash_count, due_at,
         CASE phase WHEN 4 THEN quarantine_outcome END"
    };
}

pub(super) use summary;

/// Reads a summary.
pub(super) fn overseen(row: &Row) -> Result<TaskSummary, PostgresError> {
    let kept = get::<Option<&str>>(row, 22)?.map(|kept| from_json("outcome", kept));
    Ok(TaskSummary {
        view: seen_in(row)?,
        principal: name(row, 16)?,
        owner: optional_name(row, 17)?.map(WorkerId::new),
        epoch: from_column(get(row, 18)?),
        started: get(row, 19)?,
        crash_count: u32::try_from(get::<i32>(row, 20)?).unwrap_or_default(),
        due_at: get::<Option<i64>>(row, 21)?.map(from_column),
        kept: kept.transpose()?,
    })
}

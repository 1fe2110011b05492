//! The table `result_part`: parts of large results.

use std::sync::Arc;

use rusqlite::Connection;

use super::{
    batch::Batch,
    error::SqliteError,
    respond::{Owned, owned},
    statement::{one, run},
};
use crate::store::{ResultPart, TaskId, budget};

pub(super) const INSERT: &str =
    "INSERT INTO result_part (task, block, number, body) VALUES (?1, ?2, ?3, ?4)";
pub(super) const READ: &str = "SELECT result_part.body FROM task
     JOIN result_part ON result_part.task = task.number
     WHERE task.id = ?1 AND task.principal = ?2 AND result_part.block = ?3 AND result_part.number = ?4";
// `octet_length` reads only the row header, so the bodies are not loaded.
pub(super) const MEASURE: &str =
    "SELECT coalesce(sum(octet_length(body)), 0) FROM result_part WHERE task = ?1";
pub(super) const DELETE: &str = "DELETE FROM result_part WHERE task = ?1";

/// Inserts parts. Returns their bytes.
pub(super) fn insert(
    connection: &Connection,
    number: i64,
    parts: &[ResultPart],
) -> Result<usize, SqliteError> {
    for part in parts {
        run(connection, INSERT, (number, part.block, part.number, &*part.body))?;
    }
    Ok(budget::result_parts(parts))
}

pub(super) fn read(
    connection: &Connection,
    principal: &str,
    task: &TaskId,
    (block, part): (u32, u32),
) -> Result<Option<Arc<[u8]>>, SqliteError> {
    let place = (task.as_str(), principal, block, part);
    Ok(one(connection, READ, place, |row| Ok(Arc::from(row.get_ref(0)?.as_blob()?)))?)
}

/// Deletes all parts of a task. Returns the freed bytes.
pub(super) fn delete(
    batch: &mut Batch<'_>,
    principal: &str,
    task: &TaskId,
) -> Result<u64, SqliteError> {
    let Some(Owned { number, .. }) = owned(batch, principal, task)? else { return Ok(0) };
    let freed = one(batch.connection, MEASURE, [number], |row| row.get(0))?.unwrap_or(0_i64);
    if freed > 0 {
        run(batch.connection, DELETE, [number])?;
        batch.count_bytes(principal, -freed)?;
    }
    Ok(freed.unsigned_abs())
}

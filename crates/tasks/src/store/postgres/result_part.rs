//! Parts of large results.

use std::sync::Arc;

use tokio_postgres::Row;

use super::{
    clock::from_column,
    column::{get, owned},
    error::PostgresError,
    statement::{Call, Value, values},
};
use crate::store::{ResultPart, TaskId};

/// Commits the changes like `transition::WRITE`, then inserts the parts of the result.
pub(super) const WRITE: &str =
    "SELECT insert_parts(commit_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26),
     $1, $27, $28, $29)";
pub(super) const READ: &str = "SELECT p.body FROM task t JOIN result_part p ON p.task = t.number
     WHERE t.id = $1 AND t.principal = $2 AND p.block = $3 AND p.number = $4";
pub(super) const DELETE: &str = "SELECT delete_parts($1, $2)";

/// Returns the values of [`WRITE`] that follow those of the commit.
pub(super) fn columns(parts: &[ResultPart]) -> Vec<Value<'static>> {
    values![
        parts.iter().map(|part| number(part.block)).collect::<Vec<_>>(),
        parts.iter().map(|part| number(part.number)).collect::<Vec<_>>(),
        parts.iter().map(|part| part.body.to_vec()).collect::<Vec<_>>(),
    ]
}

pub(super) fn read(principal: &str, task: &TaskId, block: u32, part: u32) -> Call {
    let (task, principal) = (owned(task.as_str()), owned(principal));
    Call::new(READ, values![task, principal, number(block), number(part)])
}

pub(super) fn read_body(rows: &[Row]) -> Result<Option<Arc<[u8]>>, PostgresError> {
    rows.first().map(|row| Ok(Arc::from(get::<&[u8]>(row, 0)?))).transpose()
}

pub(super) fn delete(principal: &str, task: &TaskId) -> Call {
    Call::new(DELETE, values![owned(principal), owned(task.as_str())])
}

pub(super) fn read_freed(rows: &[Row]) -> Result<u64, PostgresError> {
    rows.first().map_or(Ok(0), |row| Ok(from_column(get(row, 0)?)))
}

/// Converts a number to a column. A result never has as many parts as the column can count.
fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

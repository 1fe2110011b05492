//! The table `change_log`: the tasks of the last commits, for change notifications in other
//! processes.
//!
//! Each commit appends a row with the numbers of its tasks, in the same transaction. SQLite has one
//! writer at a time, so rows are numbered in commit order. A reader that has read up to a number has
//! missed nothing before it. Old rows are deleted. A reader that finds a gap treats all tasks as
//! changed.

use rusqlite::Connection;

use super::{
    batch::Changed,
    error::SqliteError,
    statement::{all, one, run},
};
use crate::store::TaskId;

/// Number of rows to keep: several seconds of commits at the maximum rate of a disk.
const KEPT: i64 = 10_000;

/// Number of commits between two deletions of old rows.
const TIDIED: i64 = 256;

pub(super) const APPEND: &str = "INSERT INTO change_log (origin, tasks) VALUES (?1, ?2)";
pub(super) const DROP: &str = "DELETE FROM change_log WHERE number <= ?1";
pub(super) const ENDS: &str =
    "SELECT (SELECT min(number) FROM change_log), (SELECT max(number) FROM change_log)";
pub(super) const SINCE: &str =
    "SELECT task.id FROM change_log, json_each(change_log.tasks) AS changed
     JOIN task ON task.number = changed.value
     WHERE change_log.number > ?1 AND change_log.origin <> ?2 ORDER BY change_log.number";
pub(super) const EVERYTHING: &str = "SELECT id FROM task";

/// Appends the row of a commit.
pub(super) fn append(
    connection: &Connection,
    origin: i64,
    changed: &[Changed],
) -> Result<(), SqliteError> {
    let mut tasks = String::from("[");
    for (index, Changed { number, .. }) in changed.iter().enumerate() {
        if index > 0 {
            tasks.push(',');
        }
        tasks.push_str(&number.to_string());
    }
    tasks.push(']');
    run(connection, APPEND, (origin, tasks))?;
    let number = connection.last_insert_rowid();
    if number % TIDIED == 0 {
        run(connection, DROP, [number - KEPT])?;
    }
    Ok(())
}

/// Returns the number of the last commit.
pub(super) fn last(connection: &Connection) -> Result<i64, SqliteError> {
    Ok(ends(connection)?.1)
}

/// Returns the tasks that other processes have changed since a commit, and the number of the last
/// commit.
pub(super) fn since(
    connection: &Connection,
    origin: i64,
    seen: i64,
) -> Result<(Vec<TaskId>, i64), SqliteError> {
    let (first, last) = ends(connection)?;
    let id = |row: &rusqlite::Row<'_>| Ok(TaskId::new(row.get::<_, String>(0)?));
    // A smaller number than the seen one means that the file was replaced by another file.
    let changed = match first > seen + 1 || last < seen {
        true => all(connection, EVERYTHING, [], id)?,
        false => all(connection, SINCE, (seen, origin), id)?,
    };
    Ok((changed, last))
}

fn ends(connection: &Connection) -> Result<(i64, i64), SqliteError> {
    let ends = one(connection, ENDS, [], |row| {
        Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
    })?;
    match ends {
        Some((Some(first), Some(last))) => Ok((first, last)),
        _ => Ok((0, 0)),
    }
}

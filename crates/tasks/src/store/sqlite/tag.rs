//! The table `tag`: indexed tasks by tag.

use rusqlite::Connection;

use super::{
    column::{from_json, to_json},
    error::SqliteError,
    statement::{one, run},
};
use crate::store::MAX_TAGS;

pub(super) const INSERT: &str =
    "INSERT INTO tag (tag, number) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
pub(super) const DELETE: &str = "DELETE FROM tag WHERE tag = ?1 AND number = ?2";
pub(super) const TAGS: &str = "SELECT tags FROM task WHERE number = ?1 AND indexed = 1";
pub(super) const SAVE: &str = "UPDATE task SET tags = ?2 WHERE number = ?1";

/// Adds tags to a task, up to the maximum. Ignores them if the task is not indexed.
pub(super) fn add(connection: &Connection, task: i64, tags: &[String]) -> Result<(), SqliteError> {
    if tags.is_empty() {
        return Ok(());
    }
    let found = one(connection, TAGS, [task], |row| row.get::<_, Option<String>>(0))?;
    let Some(known) = found else { return Ok(()) };
    let mut known = read(known.as_deref())?;
    let before = known.len();
    for tag in tags {
        if known.len() < MAX_TAGS && !known.contains(tag) {
            run(connection, INSERT, (tag, task))?;
            known.push(tag.clone());
        }
    }
    if known.len() > before {
        known.sort();
        run(connection, SAVE, (task, to_json(&known)?))?;
    }
    Ok(())
}

/// Reads the column `task.tags`.
pub(super) fn read(column: Option<&str>) -> Result<Vec<String>, SqliteError> {
    column.map_or(Ok(Vec::new()), |tags| from_json("tags", tags))
}

/// Removes a deleted task from the tags of its column.
pub(super) fn delete(connection: &Connection, task: i64, column: &str) -> Result<(), SqliteError> {
    for tag in read(Some(column))? {
        run(connection, DELETE, (tag, task))?;
    }
    Ok(())
}

//! The table `tag`: indexed tasks by tag.

use rusqlite::Connection;

use super::{
    column::{from_json, to_json},
    error::SqliteError,
    statement::{one, run},
};
use crate::store::budget;

pub(super) const INSERT: &str =
    "INSERT INTO tag (tag, number) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
pub(super) const DELETE: &str = "DELETE FROM tag WHERE tag = ?1 AND number = ?2";
pub(super) const TAGS: &str = "SELECT tags FROM task WHERE number = ?1 AND indexed = 1";
pub(super) const SAVE: &str = "UPDATE task SET tags = ?2 WHERE number = ?1";

/// Adds tags to a task, up to the maximum. Ignores them if the task is not indexed. Returns the
/// added bytes.
pub(super) fn add(
    connection: &Connection,
    task: i64,
    tags: &[String],
) -> Result<usize, SqliteError> {
    let Some(mut known) = known(connection, task, tags)? else { return Ok(0) };
    let added = budget::added_tags(&known, tags);
    for tag in &added {
        run(connection, INSERT, (tag, task))?;
        known.push((*tag).to_owned());
    }
    if !added.is_empty() {
        known.sort();
        run(connection, SAVE, (task, to_json(&known)?))?;
    }
    Ok(budget::tags(added))
}

/// Returns the bytes that [`add`] adds.
pub(super) fn growth(
    connection: &Connection,
    task: i64,
    tags: &[String],
) -> Result<usize, SqliteError> {
    let known = known(connection, task, tags)?;
    Ok(known.map_or(0, |known| budget::tags(budget::added_tags(&known, tags))))
}

/// Returns the tags of a task; `None` without new tags, or if the task is not indexed.
fn known(
    connection: &Connection,
    task: i64,
    tags: &[String],
) -> Result<Option<Vec<String>>, SqliteError> {
    if tags.is_empty() {
        return Ok(None);
    }
    let column = one(connection, TAGS, [task], |row| row.get::<_, Option<String>>(0))?;
    column.map(|column| read(column.as_deref())).transpose()
}

/// Reads the column `task.tags`.
pub(super) fn read(column: Option<&str>) -> Result<Vec<String>, SqliteError> {
    column.map_or(Ok(Vec::new()), |tags| from_json("tags", tags))
}

/// Removes a deleted task from the tags of its column. Returns the bytes of the tags.
pub(super) fn delete(
    connection: &Connection,
    task: i64,
    column: Option<&str>,
) -> Result<usize, SqliteError> {
    let tags = read(column)?;
    for tag in &tags {
        run(connection, DELETE, (tag, task))?;
    }
    Ok(budget::tags(tags.iter().map(String::as_str)))
}

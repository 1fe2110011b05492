//! Journal entries with their times, for the console.

use std::time::Duration;

use rusqlite::Connection;

use super::{
    clock::{from_column, to_column},
    column::{count, from_json},
    error::SqliteError,
    journal,
    statement::{all, one},
};
use crate::store::{JournalCursor, JournalItem, TaskId, TimelineEntry};

pub(super) const CREATED: &str = "SELECT number, created_at FROM task WHERE id = ?1";
// The inner statement sorts keys and times. The outer one reads only the bodies of the page.
pub(super) const ENTRIES: &str =
    "SELECT key, body, coalesce(recorded_at, ?2), duration FROM journal_entry
     WHERE task = ?1 AND key IN (SELECT key FROM journal_entry
         WHERE task = ?1 AND (coalesce(recorded_at, ?2), key) > (?3, ?4)
         ORDER BY coalesce(recorded_at, ?2), key LIMIT ?5)
     ORDER BY coalesce(recorded_at, ?2), key";
pub(super) const TIMES: &str =
    "SELECT key, kind, coalesce(recorded_at, ?2), duration FROM journal_entry
     WHERE task = ?1 ORDER BY coalesce(recorded_at, ?2), key LIMIT ?3";

/// Returns a page of journal entries. Must run inside a transaction, so that all statements read
/// the same state.
pub(super) fn entries(
    connection: &Connection,
    task: &TaskId,
    after: Option<&JournalCursor>,
    limit: usize,
) -> Result<Vec<JournalItem>, SqliteError> {
    let Some((task, created)) = created(connection, task)? else { return Ok(Vec::new()) };
    let (at, key) =
        after.map_or((-1, ""), |after| (to_column(after.recorded_at), after.key.as_str()));
    let rows = all(connection, ENTRIES, (task, created, at, key, count(limit)), |row| {
        let texts: (String, String) = (row.get(0)?, row.get(1)?);
        Ok((texts, row.get(2)?, row.get(3)?))
    })?;
    let items = rows.into_iter().map(|((key, body), recorded_at, micros)| {
        Ok(JournalItem {
            key,
            entry: from_json("journal", &body)?,
            recorded_at: from_column(recorded_at),
            duration: duration(micros),
        })
    });
    items.collect()
}

/// Returns the times of journal entries. Must run inside a transaction.
pub(super) fn times(
    connection: &Connection,
    task: &TaskId,
    limit: usize,
) -> Result<Vec<TimelineEntry>, SqliteError> {
    let Some((task, created)) = created(connection, task)? else { return Ok(Vec::new()) };
    let entries = all(connection, TIMES, (task, created, count(limit)), |row| {
        Ok(TimelineEntry {
            key: row.get(0)?,
            kind: journal::kind(row.get(1)?),
            recorded_at: from_column(row.get(2)?),
            duration: duration(row.get(3)?),
        })
    })?;
    Ok(entries)
}

/// Returns the row number of a task, and the time of its creation. Entries without a time have this
/// one.
fn created(connection: &Connection, task: &TaskId) -> Result<Option<(i64, i64)>, SqliteError> {
    Ok(one(connection, CREATED, [task.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

fn duration(micros: Option<i64>) -> Option<Duration> {
    micros.map(|micros| Duration::from_micros(from_column(micros)))
}

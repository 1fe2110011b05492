//! The tables `journal_entry` and `segment`: the journal of a task.

use std::{collections::BTreeMap, time::Duration};

use outlive_wire::RawJson;
use rusqlite::Connection;

use super::{
    column::{from_json, raw, to_json},
    error::SqliteError,
    input_request,
    statement::{all, one, run},
};
use crate::{JournalEntry, JournalSnapshot, SegmentRecord, store::EntryKind};

pub(super) const RECORD: &str =
    "INSERT INTO journal_entry (task, key, kind, recorded_at, duration, body)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING";
pub(super) const FORGET: &str = "DELETE FROM journal_entry WHERE task = ?1 AND key = ?2
     RETURNING octet_length(key) + octet_length(body)";
pub(super) const BYTES: &str = "SELECT octet_length(key) + octet_length(body) FROM journal_entry
     WHERE task = ?1 AND key = ?2";
pub(super) const HAS_SEGMENT: &str =
    "SELECT true FROM segment WHERE task = ?1 AND scope = ?2 AND ordinal = ?3";
pub(super) const LAST: &str = "SELECT coalesce(max(number), 0) FROM segment WHERE task = ?1";
pub(super) const EMIT: &str = "INSERT INTO segment (task, number, scope, ordinal, body)
     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
pub(super) const ENTRIES: &str = "SELECT key, body FROM journal_entry WHERE task = ?1";
pub(super) const SEGMENTS: &str =
    "SELECT scope, ordinal, body FROM segment WHERE task = ?1 ORDER BY number";
pub(super) const ANSWERS: &str =
    "SELECT key, body FROM journal_entry WHERE task = ?1 AND kind = 1 ORDER BY key";
pub(super) const COUNT_ANSWERS: &str =
    "SELECT count(*) FROM journal_entry WHERE task = ?1 AND kind = 1";

/// Time of a journal entry, for the timeline.
#[derive(Clone, Copy, Default)]
pub(super) struct EntryTime {
    /// When the entry is recorded; `None` if the task is not indexed.
    pub(super) recorded_at: Option<i64>,
    /// Duration of the step.
    pub(super) duration: Option<Duration>,
}

/// Adds an entry. Returns its bytes, or zero if the key exists; an existing entry does not change.
pub(super) fn record(
    connection: &Connection,
    task: i64,
    (key, entry): (&str, &JournalEntry),
    EntryTime { recorded_at, duration }: EntryTime,
) -> Result<usize, SqliteError> {
    let json = to_json(entry)?;
    let bytes = key.len() + json.len();
    let micros = |duration: Duration| i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    let duration = duration.filter(|_| recorded_at.is_some()).map(micros);
    let values = (task, key, kind_column(entry), recorded_at, duration, json);
    Ok(run(connection, RECORD, values)? * bytes)
}

/// Converts the kind of an entry to its column value. Workers count the input responses, which
/// therefore have a value of their own.
fn kind_column(entry: &JournalEntry) -> i64 {
    match EntryKind::new(entry) {
        EntryKind::Step => 0,
        EntryKind::Input if matches!(entry, JournalEntry::Answer(_)) => 1,
        EntryKind::FailedStep => 2,
        EntryKind::Input => 3,
        EntryKind::Timer => 4,
    }
}

/// Reads the kind of an entry.
pub(super) fn kind(column: i64) -> EntryKind {
    match column {
        0 => EntryKind::Step,
        1 | 3 => EntryKind::Input,
        2 => EntryKind::FailedStep,
        _ => EntryKind::Timer,
    }
}

/// Returns the bytes of an entry, if it exists.
pub(super) fn bytes_of(
    connection: &Connection,
    task: i64,
    key: &str,
) -> Result<Option<i64>, SqliteError> {
    Ok(one(connection, BYTES, (task, key), |row| row.get(0))?)
}

/// Returns whether a segment exists.
pub(super) fn has_segment(
    connection: &Connection,
    task: i64,
    SegmentRecord { scope, ordinal, .. }: &SegmentRecord,
) -> Result<bool, SqliteError> {
    let there = one(connection, HAS_SEGMENT, (task, scope, ordinal), |row| row.get(0))?;
    Ok(there.unwrap_or_default())
}

/// Deletes an entry. Returns its bytes.
pub(super) fn forget(connection: &Connection, task: i64, key: &str) -> Result<i64, SqliteError> {
    Ok(one(connection, FORGET, (task, key), |row| row.get(0))?.unwrap_or_default())
}

/// Appends segments. Returns their bytes. An existing segment with the same scope and ordinal does
/// not change, so a repeated write is harmless.
pub(super) fn emit(
    connection: &Connection,
    task: i64,
    segments: &[SegmentRecord],
) -> Result<usize, SqliteError> {
    if segments.is_empty() {
        return Ok(0);
    }
    let mut bytes = 0;
    let last: Option<i64> = one(connection, LAST, [task], |row| row.get(0))?;
    let mut last = last.unwrap_or_default();
    for SegmentRecord { scope, ordinal, block } in segments {
        let added = run(connection, EMIT, (task, last + 1, scope, ordinal, block.get()))?;
        last += i64::from(added > 0);
        bytes += added * (scope.len() + block.get().len());
    }
    Ok(bytes)
}

/// Returns the journal that a run replays.
pub(super) fn restore(
    connection: &Connection,
    task: i64,
    reasked_before: Option<&str>,
) -> Result<JournalSnapshot, SqliteError> {
    let mut reasked: BTreeMap<String, u32> = match reasked_before {
        Some(json) => from_json("input_request", json)?,
        None => BTreeMap::new(),
    };
    for (key, again) in input_request::reissue_counts(connection, task)? {
        *reasked.entry(key).or_default() += again;
    }
    Ok(JournalSnapshot {
        entries: entries(connection, task)?,
        segments: segments(connection, task)?,
        input_requests: input_request::open_keys(connection, task)?,
        reasked,
    })
}

pub(super) fn entries(
    connection: &Connection,
    task: i64,
) -> Result<BTreeMap<String, JournalEntry>, SqliteError> {
    let rows = all(connection, ENTRIES, [task], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    rows.into_iter().map(|(key, body)| Ok((key, from_json("journal", &body)?))).collect()
}

fn segments(connection: &Connection, task: i64) -> Result<Vec<SegmentRecord>, SqliteError> {
    let rows = all(connection, SEGMENTS, [task], |row| {
        Ok((row.get(0)?, row.get(1)?, row.get::<_, String>(2)?))
    })?;
    rows.into_iter()
        .map(|(scope, ordinal, body)| {
            Ok(SegmentRecord { scope, ordinal, block: raw("segments", body)? })
        })
        .collect()
}

/// Returns the input responses, by journal key.
pub(super) fn answers(
    connection: &Connection,
    task: i64,
) -> Result<Vec<(String, RawJson)>, SqliteError> {
    let rows = all(connection, ANSWERS, [task], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut answers = Vec::with_capacity(rows.len());
    for (key, body) in rows {
        if let JournalEntry::Answer(answer) = from_json("journal", &body)? {
            answers.push((key, answer));
        }
    }
    Ok(answers)
}

pub(super) fn count_answers(connection: &Connection, task: i64) -> Result<i64, SqliteError> {
    Ok(one(connection, COUNT_ANSWERS, [task], |row| row.get(0))?.unwrap_or_default())
}

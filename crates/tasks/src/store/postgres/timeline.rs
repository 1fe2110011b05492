//! Journal entries with their times. An entry of a task that is not indexed has the time of the
//! task's creation.

use std::time::Duration;

use tokio_postgres::Row;

use super::{
    clock::{from_column, to_column},
    column::{count, from_json, get, name, owned},
    error::PostgresError,
    statement::{Call, values},
};
use crate::store::{EntryKind, JournalCursor, JournalItem, TaskId, TimelineEntry};

pub(super) const JOURNAL: &str =
    "SELECT e.key, coalesce(e.recorded_at, t.created_at) AS recorded, e.duration, e.body
     FROM task t JOIN journal_entry e ON e.task = t.number
     WHERE t.id = $1 AND (coalesce(e.recorded_at, t.created_at), e.key) > ($2, $3)
     ORDER BY recorded, e.key LIMIT $4";
// The beginning of a body has its kind.
pub(super) const TIMELINE: &str =
    "SELECT e.key, coalesce(e.recorded_at, t.created_at) AS recorded, e.duration, substr(e.body, 1, 4)
     FROM task t JOIN journal_entry e ON e.task = t.number
     WHERE t.id = $1 ORDER BY recorded, e.key LIMIT $2";

pub(super) fn journal(task: &TaskId, after: Option<&JournalCursor>, limit: usize) -> Call {
    // No entry was recorded before 1970.
    let (at, key) =
        after.map_or((-1, ""), |after| (to_column(after.recorded_at), after.key.as_str()));
    Call::new(JOURNAL, values![owned(task.as_str()), at, owned(key), count(limit)])
}

pub(super) fn read_journal(rows: &[Row]) -> Result<Vec<JournalItem>, PostgresError> {
    let item = |row: &Row| {
        Ok(JournalItem {
            key: name(row, 0)?,
            entry: from_json("journal", get(row, 3)?)?,
            recorded_at: from_column(get(row, 1)?),
            duration: duration(row)?,
        })
    };
    rows.iter().map(item).collect()
}

pub(super) fn timeline(task: &TaskId, limit: usize) -> Call {
    Call::new(TIMELINE, values![owned(task.as_str()), count(limit)])
}

pub(super) fn read_timeline(rows: &[Row]) -> Result<Vec<TimelineEntry>, PostgresError> {
    let entry = |row: &Row| {
        Ok(TimelineEntry {
            key: name(row, 0)?,
            kind: kind(get(row, 3)?),
            recorded_at: from_column(get(row, 1)?),
            duration: duration(row)?,
        })
    };
    rows.iter().map(entry).collect()
}

fn duration(row: &Row) -> Result<Option<Duration>, PostgresError> {
    let micros: Option<i64> = get(row, 2)?;
    Ok(micros.map(|micros| Duration::from_micros(from_column(micros))))
}

/// Returns the kind of an entry from the beginning of its serialized form.
fn kind(body: &str) -> EntryKind {
    match body {
        r#"{"v""# | r#"{"x""# => EntryKind::Step,
        r#"{"f""# => EntryKind::FailedStep,
        r#"{"a""# | r#"{"u""# => EntryKind::Input,
        _ => EntryKind::Timer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::kind;
    use crate::{InputFailure, JournalEntry, StepFailure, store::EntryKind};

    #[test]
    fn kind_of_serialized_entry_is_kind_of_entry() {
        let raw = || to_raw_value(&1).unwrap();
        for entry in [
            JournalEntry::Value(raw()),
            JournalEntry::Secret(raw()),
            JournalEntry::Failed(StepFailure::new("no")),
            JournalEntry::Answer(raw()),
            JournalEntry::Unanswered(InputFailure::TimedOut),
            JournalEntry::Due(1),
            JournalEntry::Begun,
            JournalEntry::State(raw()),
        ] {
            let json = serde_json::to_string(&entry).unwrap();
            let start: String = json.chars().take(4).collect();
            assert_eq!(kind(&start), EntryKind::new(&entry), "{json}");
        }
    }
}

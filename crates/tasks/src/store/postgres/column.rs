//! Conversions between columns and Rust types.

use std::borrow::Cow;

use outlive_wire::RawJson;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio_postgres::{Row, types::FromSql};

use super::error::PostgresError;
use crate::store::{Phase, StoreError};

pub(super) fn phase(column: i16) -> Result<Phase, PostgresError> {
    match column {
        0 => Ok(Phase::Queued),
        1 => Ok(Phase::Running),
        2 => Ok(Phase::Parked),
        3 => Ok(Phase::Ended),
        4 => Ok(Phase::Quarantined),
        other => Err(unreadable("phase", &other)),
    }
}

/// Converts a phase to its column value.
pub(super) fn phase_column(phase: Phase) -> i16 {
    match phase {
        Phase::Queued => 0,
        Phase::Running => 1,
        Phase::Parked => 2,
        Phase::Ended => 3,
        Phase::Quarantined => 4,
    }
}

// Escape character, from a private use area of Unicode. PostgreSQL stores every character except
// NUL, which is escaped with this character.
const ESCAPE: char = '\u{e000}';

/// Escapes a text for a column.
pub(super) fn text(name: &str) -> Cow<'_, str> {
    match name.contains(['\0', ESCAPE]) {
        false => Cow::Borrowed(name),
        true => Cow::Owned(name.replace(ESCAPE, "\u{e000}1").replace('\0', "\u{e000}0")),
    }
}

pub(super) fn owned(name: &str) -> String {
    text(name).into_owned()
}

pub(super) fn from_text(column: String) -> String {
    match column.contains(ESCAPE) {
        false => column,
        true => column.replace("\u{e000}0", "\0").replace("\u{e000}1", "\u{e000}"),
    }
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|why| StoreError::Unavailable(format!("cannot serialize a value as JSON: {why}")))
}

pub(super) fn from_json<T: DeserializeOwned>(what: &str, column: &str) -> Result<T, PostgresError> {
    serde_json::from_str(column).map_err(|why| unreadable(what, &why))
}

pub(super) fn raw(what: &str, column: String) -> Result<RawJson, PostgresError> {
    RawValue::from_string(column).map_err(|why| unreadable(what, &why))
}

/// Parses the progress of a task.
pub(super) fn progress(column: Option<String>) -> Result<Option<RawJson>, PostgresError> {
    column.map(|column| raw("progress", column)).transpose()
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns a column of a row.
pub(super) fn get<'a, T: FromSql<'a>>(row: &'a Row, column: usize) -> Result<T, PostgresError> {
    Ok(row.try_get(column)?)
}

/// Returns an escaped text column of a row.
pub(super) fn name(row: &Row, column: usize) -> Result<String, PostgresError> {
    Ok(from_text(get(row, column)?))
}

/// Returns an escaped text column of a row that may be NULL.
pub(super) fn optional_name(row: &Row, column: usize) -> Result<Option<String>, PostgresError> {
    Ok(get::<Option<String>>(row, column)?.map(from_text))
}

/// Returns an array column of a row. An empty array is NULL.
pub(super) fn list<'a, T: FromSql<'a>>(
    row: &'a Row,
    column: usize,
) -> Result<Vec<T>, PostgresError> {
    Ok(get::<Option<Vec<T>>>(row, column)?.unwrap_or_default())
}

/// Converts a list to an array value. An empty list is NULL.
pub(super) fn array<T>(values: Vec<T>) -> Option<Vec<T>> {
    (!values.is_empty()).then_some(values)
}

/// Returns the error for a column that this version cannot read.
pub(super) fn unreadable(what: &str, why: &dyn std::fmt::Display) -> PostgresError {
    PostgresError::Store(StoreError::Incompatible(format!(
        "cannot read the {what} of a task: {why}; upgrade this program, or restore the database from a backup"
    )))
}

#[cfg(test)]
mod tests {
    use super::{from_text, owned};

    #[test]
    fn escaped_text_round_trips_unchanged() {
        for name in ["", "ü", "a\0b", "\0\u{e000}0\u{e000}1", "\u{e000}\0"] {
            let column = owned(name);
            assert!(!column.contains('\0'));
            assert_eq!(from_text(column), name);
        }
        assert_ne!(owned("\0"), owned("\u{e000}0"));
    }
}

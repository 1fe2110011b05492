//! Conversions between columns and Rust types.

use outlive_wire::RawJson;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::error::SqliteError;
use crate::store::{Audience, Phase, StoreError};

pub(super) const QUEUED: i64 = 0;
pub(super) const RUNNING: i64 = 1;
pub(super) const PARKED: i64 = 2;
pub(super) const ENDED: i64 = 3;
pub(super) const KEPT: i64 = 4;

pub(super) fn phase(column: i64) -> Result<Phase, SqliteError> {
    match column {
        QUEUED => Ok(Phase::Queued),
        RUNNING => Ok(Phase::Running),
        PARKED => Ok(Phase::Parked),
        ENDED => Ok(Phase::Ended),
        KEPT => Ok(Phase::Quarantined),
        other => Err(unreadable("phase", &other)),
    }
}

pub(super) fn audience(column: i16) -> Result<Audience, SqliteError> {
    Audience::from_column(column).ok_or_else(|| unreadable("audience", &column))
}

pub(super) fn to_json(value: &impl Serialize) -> Result<String, SqliteError> {
    serde_json::to_string(value).map_err(|why| {
        SqliteError::Store(StoreError::Unavailable(format!(
            "cannot serialize a value as JSON: {why}"
        )))
    })
}

pub(super) fn from_json<T: DeserializeOwned>(what: &str, column: &str) -> Result<T, SqliteError> {
    serde_json::from_str(column).map_err(|why| unreadable(what, &why))
}

pub(super) fn raw(what: &str, column: String) -> Result<RawJson, SqliteError> {
    RawValue::from_string(column).map_err(|why| unreadable(what, &why))
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a phase to its column value.
pub(super) fn phase_column(phase: Phase) -> i64 {
    match phase {
        Phase::Queued => QUEUED,
        Phase::Running => RUNNING,
        Phase::Parked => PARKED,
        Phase::Ended => ENDED,
        Phase::Quarantined => KEPT,
    }
}

fn unreadable(what: &str, why: &dyn std::fmt::Display) -> SqliteError {
    SqliteError::Store(StoreError::Incompatible(format!(
        "cannot read the {what} of a task: {why}; upgrade this program, or restore the file from a backup"
    )))
}

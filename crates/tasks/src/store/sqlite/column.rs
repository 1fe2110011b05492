//! Conversions between columns and Rust types.

use outlive_wire::RawJson;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

use super::error::SqliteError;
use crate::store::{Audience, InputRequestState, Phase, StoreError};

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

/// Reads an audience from its number and, for people, from their names and scope.
pub(super) fn audience(column: i16, people: Option<&str>) -> Result<Audience, SqliteError> {
    let Some(people) = people else {
        return Audience::from_column(column).ok_or_else(|| unreadable("audience", &column));
    };
    let names_and_scope: (Option<Vec<String>>, Option<String>) = from_json("audience", people)?;
    match names_and_scope {
        (Some(names), None) => Ok(Audience::Names(names)),
        (None, Some(scope)) => Ok(Audience::Scope(scope)),
        (Some(names), Some(scope)) => Ok(Audience::NamesOrScope(names, scope)),
        (None, None) => Err(unreadable("audience", &people)),
    }
}

/// Converts the names and the scope of an audience to JSON; `None` for an audience without people.
pub(super) fn people(audience: &Audience) -> Result<Option<String>, SqliteError> {
    let names_and_scope = match audience {
        Audience::Client | Audience::Caller => return Ok(None),
        Audience::Names(names) => (Some(names), None),
        Audience::Scope(scope) => (None, Some(scope)),
        Audience::NamesOrScope(names, scope) => (Some(names), Some(scope)),
    };
    to_json(&names_and_scope).map(Some)
}

/// Reads the state of an input request.
pub(super) fn request_state(column: i64) -> InputRequestState {
    match column {
        0 => InputRequestState::Open,
        1 => InputRequestState::Answered,
        _ => InputRequestState::Withdrawn,
    }
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

#[cfg(test)]
mod tests {
    use super::{audience, people};
    use crate::store::Audience;

    #[test]
    fn audience_is_readable_after_its_conversion() {
        let names = vec!["ada".to_owned(), "ben \"b\"".to_owned()];
        for written in [
            Audience::Client,
            Audience::Caller,
            Audience::Names(names.clone()),
            Audience::Names(Vec::new()),
            Audience::Scope("ops:approve".to_owned()),
            Audience::NamesOrScope(names, "ops".to_owned()),
        ] {
            let column = people(&written).unwrap();
            assert_eq!(audience(written.column(), column.as_deref()).unwrap(), written);
        }
    }

    #[test]
    fn unknown_audience_is_rejected() {
        assert!(audience(2, None).is_err(), "names and scope are missing");
        assert!(audience(3, None).is_err());
        assert!(audience(2, Some("[null,null]")).is_err());
    }
}

//! The table `key_value`: expiring values under keys.

use std::time::Duration;

use outlive_wire::RawJson;
use tokio_postgres::Row;

use super::{
    clock::{millis, to_column},
    column::{count, get, name, owned, raw},
    error::PostgresError,
    state::Shared,
    statement::{Call, values},
};
use crate::store::{Charge, StoreError};

pub(super) const PUT: &str = "SELECT * FROM kv_put($1, $2, $3, $4, $5, $6, $7)";
pub(super) const KEPT: &str =
    "SELECT body FROM key_value WHERE key = $1 AND expires_at > now_ms($2)";
pub(super) const STARTING_WITH: &str = "SELECT key, body FROM key_value
     WHERE starts_with(key, $1) AND expires_at > now_ms($2) ORDER BY key LIMIT $3";
pub(super) const FORGET: &str = "SELECT kv_delete($1)";

/// Returns the statement that stores a value. `is_to_replace` states whether to replace an existing
/// one.
pub(super) fn put(
    shared: &Shared,
    key: &str,
    note: &RawJson,
    ttl: Duration,
    is_to_replace: bool,
    charge: Option<&Charge>,
) -> Call {
    Call::new(
        PUT,
        values![
            owned(key),
            note.get().to_owned(),
            millis(ttl),
            is_to_replace,
            charge.map(|charge| owned(&charge.principal)),
            charge.map(|charge| to_column(charge.max_bytes)),
            shared.shift.get(),
        ],
    )
}

pub(super) fn kept(shared: &Shared, key: &str) -> Call {
    Call::new(KEPT, values![owned(key), shared.shift.get()])
}

/// Returns the statement that reads the unexpired entries whose key starts with `prefix`.
pub(super) fn starting_with(shared: &Shared, prefix: &str, limit: usize) -> Call {
    Call::new(STARTING_WITH, values![owned(prefix), shared.shift.get(), count(limit)])
}

pub(super) fn forget(key: &str) -> Call {
    Call::new(FORGET, values![owned(key)])
}

/// Reads the existing value, if it was not replaced.
pub(super) fn read_put(rows: &[Row]) -> Result<Option<RawJson>, PostgresError> {
    let row = rows.first().ok_or(PostgresError::Silent)?;
    match get::<i32>(row, 0)? {
        0 => Ok(None),
        1 => Ok(Some(raw("notes", get(row, 1)?)?)),
        _ => Err(StoreError::BytesExceeded.into()),
    }
}

pub(super) fn read(rows: &[Row]) -> Result<Option<RawJson>, PostgresError> {
    let note: Option<String> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    note.map(|note| raw("notes", note)).transpose()
}

pub(super) fn read_entries(rows: &[Row]) -> Result<Vec<(String, RawJson)>, PostgresError> {
    rows.iter().map(|row| Ok((name(row, 0)?, raw("notes", get(row, 1)?)?))).collect()
}

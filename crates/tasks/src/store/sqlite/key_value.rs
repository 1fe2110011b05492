//! The table `key_value`: expiring values under keys.

use std::time::Duration;

use outlive_wire::RawJson;
use rusqlite::Connection;

use super::{
    batch::Batch,
    clock::{millis, to_column},
    column::{count, raw},
    error::SqliteError,
    statement::{all, one, run},
};
use crate::store::{
    Charge, StoreError,
    budget::{ENTRY_BYTES, key_value},
};

pub(super) const KEPT: &str = "SELECT body FROM key_value WHERE key = ?1 AND expires_at > ?2";
pub(super) const THERE: &str =
    "SELECT principal, octet_length(key) + octet_length(body) FROM key_value
     WHERE key = ?1 AND principal IS NOT NULL";
pub(super) const REPLACE: &str = "INSERT INTO key_value (key, body, expires_at, principal)
     VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET body = excluded.body,
     expires_at = excluded.expires_at, principal = excluded.principal";
pub(super) const FORGET: &str = "DELETE FROM key_value WHERE key = ?1 RETURNING principal, octet_length(key) + octet_length(body)";
pub(super) const SWEEP: &str = "DELETE FROM key_value WHERE key IN
     (SELECT key FROM key_value WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2)
     RETURNING principal, octet_length(key) + octet_length(body)";

// Only operators use it, so it may read all keys after `prefix`.
pub(super) const STARTING_WITH: &str = "SELECT key, body FROM key_value WHERE key >= ?1
     AND substr(key, 1, length(?1)) = ?1 AND expires_at > ?2 ORDER BY key LIMIT ?3";

/// Stores a value if the key is absent. Returns the existing value otherwise.
pub(super) fn keep(
    batch: &mut Batch<'_>,
    key: &str,
    note: &RawJson,
    ttl: Duration,
    charge: Option<&Charge>,
) -> Result<Option<RawJson>, SqliteError> {
    let before = kept(batch.connection, key, batch.now())?;
    if before.is_none() {
        replace(batch, key, note, ttl, charge)?;
    }
    Ok(before)
}

pub(super) fn replace(
    batch: &mut Batch<'_>,
    key: &str,
    note: &RawJson,
    ttl: Duration,
    charge: Option<&Charge>,
) -> Result<(), SqliteError> {
    let bytes = count(key_value(key, note.get()));
    let old = one(batch.connection, THERE, [key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let old: Option<(String, i64)> = old.map(|(owner, bytes): (_, i64)| (owner, whole(bytes)));
    if let Some(Charge { principal, max_bytes }) = charge {
        let freed = old.as_ref().filter(|(owner, _)| owner == principal);
        let stored = batch.stored_bytes(principal)? - freed.map_or(0, |(_, bytes)| *bytes);
        if stored + bytes > to_column(*max_bytes) {
            return Err(StoreError::BytesExceeded.into());
        }
        batch.count_bytes(principal, bytes)?;
    }
    if let Some((owner, bytes)) = old {
        batch.count_bytes(&owner, -bytes)?;
    }
    let principal = charge.map(|charge| &charge.principal);
    let values = (key, note.get(), batch.now() + millis(ttl), principal);
    run(batch.connection, REPLACE, values)?;
    Ok(())
}

pub(super) fn kept(
    connection: &Connection,
    key: &str,
    now: i64,
) -> Result<Option<RawJson>, SqliteError> {
    let body = one(connection, KEPT, (key, now), |row| row.get::<_, String>(0))?;
    body.map(|body| raw("note", body)).transpose()
}

/// Returns the unexpired entries whose key starts with `prefix`.
pub(super) fn starting_with(
    connection: &Connection,
    prefix: &str,
    now: i64,
    limit: usize,
) -> Result<Vec<(String, RawJson)>, SqliteError> {
    let rows = all(connection, STARTING_WITH, (prefix, now, count(limit)), |row| {
        Ok((row.get(0)?, row.get::<_, String>(1)?))
    })?;
    rows.into_iter().map(|(key, body)| Ok((key, raw("note", body)?))).collect()
}

pub(super) fn forget(batch: &mut Batch<'_>, key: &str) -> Result<(), SqliteError> {
    let gone = one(batch.connection, FORGET, [key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    gone.map_or(Ok(()), |gone| discharge(batch, &gone))
}

/// Deletes expired entries. Returns the number of deleted entries.
pub(super) fn sweep(batch: &mut Batch<'_>, limit: usize) -> Result<usize, SqliteError> {
    let values = (batch.now(), count(limit));
    let gone = all(batch.connection, SWEEP, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    gone.iter().try_for_each(|gone| discharge(batch, gone))?;
    Ok(gone.len())
}

/// Subtracts the bytes of a deleted entry from the principal that was charged for it.
fn discharge(
    batch: &mut Batch<'_>,
    (principal, bytes): &(Option<String>, i64),
) -> Result<(), SqliteError> {
    match principal {
        Some(principal) => batch.count_bytes(principal, -whole(*bytes)),
        None => Ok(()),
    }
}

/// Returns the counted bytes of an entry whose key and value have `bytes` bytes.
fn whole(bytes: i64) -> i64 {
    bytes + count(ENTRY_BYTES)
}

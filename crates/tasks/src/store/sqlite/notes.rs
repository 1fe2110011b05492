//! Notes that are no tasks, each under a key and for some time.

use std::time::Duration;

use outlive_wire::RawJson;
use rusqlite::Connection;

use super::{
    clock::millis,
    column::{count, raw},
    problem::Problem,
    statement::{one, run},
    writer::Batch,
};

pub(super) const KEPT: &str = "SELECT body FROM note WHERE key = ?1 AND expires > ?2";
pub(super) const REPLACE: &str = "INSERT INTO note (key, body, expires) VALUES (?1, ?2, ?3)
     ON CONFLICT DO UPDATE SET body = excluded.body, expires = excluded.expires";
pub(super) const FORGET: &str = "DELETE FROM note WHERE key = ?1";
pub(super) const SWEEP: &str = "DELETE FROM note WHERE key IN
     (SELECT key FROM note WHERE expires <= ?1 ORDER BY expires LIMIT ?2)";

/// Keeps a note, unless one is there.
pub(super) fn keep(
    batch: &Batch<'_>,
    key: &str,
    note: &RawJson,
    ttl: Duration,
) -> Result<Option<RawJson>, Problem> {
    let before = kept(batch.connection, key, batch.now())?;
    if before.is_none() {
        replace(batch, key, note, ttl)?;
    }
    Ok(before)
}

pub(super) fn replace(
    batch: &Batch<'_>,
    key: &str,
    note: &RawJson,
    ttl: Duration,
) -> Result<(), Problem> {
    run(batch.connection, REPLACE, (key, note.get(), batch.now() + millis(ttl)))?;
    Ok(())
}

pub(super) fn kept(
    connection: &Connection,
    key: &str,
    now: i64,
) -> Result<Option<RawJson>, Problem> {
    let body = one(connection, KEPT, (key, now), |row| row.get::<_, String>(0))?;
    body.map(|body| raw("note", body)).transpose()
}

pub(super) fn forget(batch: &Batch<'_>, key: &str) -> Result<(), Problem> {
    run(batch.connection, FORGET, [key])?;
    Ok(())
}

/// Forgets what is over, and says how much.
pub(super) fn sweep(batch: &Batch<'_>, limit: usize) -> Result<usize, Problem> {
    Ok(run(batch.connection, SWEEP, (batch.now(), count(limit)))?)
}

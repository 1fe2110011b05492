//! The table `input_request`. A row stays after its request is resolved or withdrawn, because a
//! wire key identifies one input request for the lifetime of the task.

use rusqlite::Connection;

use super::{
    batch::Batch,
    clock::{from_column, to_column},
    column::{count, to_json},
    error::SqliteError,
    statement::{all, one, run},
};
use crate::store::{InputSource, NewInputRequest, lifetime::Lifetime};

pub(super) const OPEN: &str =
    "INSERT INTO input_request (task, wire_key, journal_key, ordinal, state, due_at, body, is_external, audience)
     VALUES (?1, ?2, ?3, (SELECT coalesce(max(ordinal), 0) + 1 FROM input_request WHERE task = ?1), 0, ?4,
     ?5, ?6, ?7) ON CONFLICT DO UPDATE SET journal_key = excluded.journal_key, ordinal = excluded.ordinal, state = 0,
     due_at = excluded.due_at, body = excluded.body, is_external = excluded.is_external,
     audience = excluded.audience WHERE state = 2";
pub(super) const WITHDRAW: &str =
    "UPDATE input_request SET state = 2 WHERE task = ?1 AND wire_key = ?2 AND state = 0";
pub(super) const WITHDRAW_ALL: &str =
    "UPDATE input_request SET state = 2 WHERE task = ?1 AND state = 0";
pub(super) const RESOLVE: &str = "UPDATE input_request SET state = 1
     WHERE task = ?1 AND wire_key = ?2 AND state = 0 AND is_external = ?3 AND audience <= ?4
     RETURNING journal_key";
pub(super) const OPEN_KEY: &str = "SELECT journal_key FROM input_request
     WHERE task = ?1 AND wire_key = ?2 AND state = 0 AND is_external = ?3 AND audience <= ?4";
pub(super) const BYTES: &str =
    "SELECT octet_length(wire_key) + octet_length(journal_key) + octet_length(body) FROM input_request
     WHERE task = ?1 AND wire_key = ?2";
pub(super) const LIFETIME: &str =
    "SELECT open, created_at, effective_ttl, ttl, max_ttl, phase = 4 FROM task WHERE number = ?1";
pub(super) const UPDATE_TASK: &str =
    "UPDATE task SET open = ?2, effective_ttl = ?3, expires_at = created_at + ?3 WHERE number = ?1";
pub(super) const OPEN_KEYS: &str =
    "SELECT journal_key FROM input_request WHERE task = ?1 AND state = 0 ORDER BY ordinal";
pub(super) const REISSUE_COUNTS: &str = "SELECT journal_key, count(*) - 1 FROM input_request WHERE task = ?1 GROUP BY journal_key HAVING count(*) > 1";

/// Opens a request, unless it is open or resolved. Returns the added bytes if the request was not
/// open.
pub(super) fn open(
    connection: &Connection,
    task: i64,
    asked: &NewInputRequest,
) -> Result<Option<i64>, SqliteError> {
    let (due, outside) = (asked.due.map(to_column), asked.request.is_none());
    let body = to_json(&asked.request)?;
    let bytes = count(asked.name.len() + asked.key.len() + body.len());
    let before = bytes_of(connection, task, &asked.name)?.unwrap_or_default();
    let values = (task, &asked.name, &asked.key, due, body, outside, asked.audience.column());
    let opened = run(connection, OPEN, values)? > 0;
    Ok(opened.then_some(bytes - before))
}

/// Returns the bytes of a request, if it exists.
pub(super) fn bytes_of(
    connection: &Connection,
    task: i64,
    name: &str,
) -> Result<Option<i64>, SqliteError> {
    Ok(one(connection, BYTES, (task, name), |row| row.get(0))?)
}

/// Returns the journal key of an open request that the source may respond to.
pub(super) fn open_key(
    connection: &Connection,
    task: i64,
    name: &str,
    from: InputSource,
) -> Result<Option<String>, SqliteError> {
    let outside = from == InputSource::External;
    Ok(one(connection, OPEN_KEY, (task, name, outside, from.max_audience()), |row| row.get(0))?)
}

/// Withdraws a request. Returns whether it was open.
pub(super) fn withdraw(
    connection: &Connection,
    task: i64,
    name: &str,
) -> Result<bool, SqliteError> {
    Ok(run(connection, WITHDRAW, (task, name))? > 0)
}

/// Withdraws all open requests. Returns their number.
pub(super) fn withdraw_all(connection: &Connection, task: i64) -> Result<usize, SqliteError> {
    Ok(run(connection, WITHDRAW_ALL, [task])?)
}

/// Resolves an open request that the source may respond to. Returns its journal key.
pub(super) fn resolve(
    connection: &Connection,
    task: i64,
    name: &str,
    from: InputSource,
) -> Result<Option<String>, SqliteError> {
    let outside = from == InputSource::External;
    Ok(one(connection, RESOLVE, (task, name, outside, from.max_audience()), |row| row.get(0))?)
}

/// Updates the number of open requests of a task, and the TTL that depends on it.
pub(super) fn update_task(
    batch: &Batch<'_>,
    task: i64,
    opened: usize,
    closed: usize,
) -> Result<(), SqliteError> {
    if (opened, closed) == (0, 0) {
        return Ok(());
    }
    let row = one(batch.connection, LIFETIME, [task], |row| {
        let open = usize::try_from(row.get::<_, i64>(0)?).unwrap_or_default();
        let lifetime = Lifetime {
            ttl: row.get::<_, Option<i64>>(3)?.map(from_column),
            max: from_column(row.get(4)?),
        };
        let ttl = row.get::<_, Option<i64>>(2)?.map(from_column);
        Ok((open, row.get::<_, i64>(1)?, ttl, lifetime, row.get::<_, bool>(5)?))
    })?;
    let Some((before, created, ttl, lifetime, is_kept)) = row else { return Ok(()) };
    let open = (before + opened).saturating_sub(closed);
    let elapsed = from_column(batch.now() - created);
    // A response does not shorten a quarantine.
    let ttl = match is_kept {
        true => ttl,
        false => lifetime.when_asked(ttl, (before, open), elapsed),
    };
    run(batch.connection, UPDATE_TASK, (task, count(open), ttl.map(to_column)))?;
    Ok(())
}

/// Returns the journal keys of the open requests, in the order of their issue.
pub(super) fn open_keys(connection: &Connection, task: i64) -> Result<Vec<String>, SqliteError> {
    Ok(all(connection, OPEN_KEYS, [task], |row| row.get(0))?)
}

/// Returns the number of reissues of each request.
pub(super) fn reissue_counts(
    connection: &Connection,
    task: i64,
) -> Result<Vec<(String, u32)>, SqliteError> {
    Ok(all(connection, REISSUE_COUNTS, [task], |row| Ok((row.get(0)?, row.get(1)?)))?)
}

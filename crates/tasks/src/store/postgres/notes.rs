//! What is kept beside the tasks: notes.

use std::time::Duration;

use outlive_wire::RawJson;
use tokio_postgres::Row;

use super::{
    Shared,
    call::{Call, values},
    clock::millis,
    column::{get, owned, raw},
    problem::Problem,
};

pub(super) const KEEP: &str = "SELECT keep_note($1, $2, $3, $4)";
pub(super) const REPLACE: &str = "INSERT INTO note (key, body, expires)
     VALUES ($1, $2, now_ms($4) + $3)
     ON CONFLICT (key) DO UPDATE SET body = excluded.body, expires = excluded.expires";
pub(super) const KEPT: &str = "SELECT body FROM note WHERE key = $1 AND expires > now_ms($2)";
pub(super) const FORGET: &str = "DELETE FROM note WHERE key = $1";

pub(super) fn keep(shared: &Shared, key: &str, note: &RawJson, ttl: Duration) -> Call {
    put(KEEP, shared, key, note, ttl)
}

pub(super) fn replace(shared: &Shared, key: &str, note: &RawJson, ttl: Duration) -> Call {
    put(REPLACE, shared, key, note, ttl)
}

fn put(sql: &'static str, shared: &Shared, key: &str, note: &RawJson, ttl: Duration) -> Call {
    let (note, shift) = (note.get().to_owned(), shared.shift.get());
    Call::new(sql, values![owned(key), note, millis(ttl), shift])
}

pub(super) fn kept(shared: &Shared, key: &str) -> Call {
    Call::new(KEPT, values![owned(key), shared.shift.get()])
}

pub(super) fn forget(key: &str) -> Call {
    Call::new(FORGET, values![owned(key)])
}

pub(super) fn read(rows: &[Row]) -> Result<Option<RawJson>, Problem> {
    let note: Option<String> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    note.map(|note| raw("notes", note)).transpose()
}

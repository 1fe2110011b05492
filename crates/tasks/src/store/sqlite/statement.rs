//! Statements that are prepared once for each connection, and counted.

use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

use super::error::SqliteError;

/// The first row, if there is one. A statement that writes has written everything by then.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    prepared(connection, sql)?.query_row(params, read).optional()
}

/// All rows.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    prepared(connection, sql)?.query_map(params, read)?.collect()
}

/// Rows for as long as more are wanted.
pub(super) fn until(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut wants_more: impl FnMut(&Row<'_>) -> rusqlite::Result<bool>,
) -> rusqlite::Result<()> {
    let mut statement = prepared(connection, sql)?;
    let mut rows = statement.query(params)?;
    while let Some(row) = rows.next()? {
        if !wants_more(row)? {
            break;
        }
    }
    Ok(())
}

/// Runs it, and says how many rows it has changed.
pub(super) fn run(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<usize> {
    prepared(connection, sql)?.execute(params)
}

/// How many statements this process has made, to all of its files.
pub(super) fn made() -> u64 {
    MADE.load(Ordering::Relaxed)
}

// One for all files: a connection does not say which store it belongs to, and nobody needs to know.
static MADE: AtomicU64 = AtomicU64::new(0);

fn prepared<'c>(connection: &'c Connection, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
    MADE.fetch_add(1, Ordering::Relaxed);
    connection.prepare_cached(sql)
}

/// Reads one state of the file, whatever other connections write meanwhile.
pub(super) fn in_one_piece<T>(
    connection: &Connection,
    look: impl FnOnce(&Connection) -> Result<T, SqliteError>,
) -> Result<T, SqliteError> {
    if !connection.is_autocommit() {
        return look(connection);
    }
    run(connection, "BEGIN", [])?;
    let seen = look(connection);
    run(connection, "ROLLBACK", [])?;
    seen
}

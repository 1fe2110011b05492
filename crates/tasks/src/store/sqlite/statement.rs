//! Execution of prepared statements, which are cached per connection and counted.

use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row};

use super::error::SqliteError;

/// Returns the first row, if there is one. A writing statement has executed completely by then.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    prepared(connection, sql)?.query_row(params, read).optional()
}

/// Returns all rows.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    prepared(connection, sql)?.query_map(params, read)?.collect()
}

/// Reads rows while `wants_more` returns `true`.
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

/// Executes a statement. Returns the number of changed rows.
pub(super) fn run(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> rusqlite::Result<usize> {
    prepared(connection, sql)?.execute(params)
}

/// Returns the number of statements that this process has executed, on all files.
pub(super) fn made() -> u64 {
    MADE.load(Ordering::Relaxed)
}

// One counter for all files, because a connection does not know its store.
static MADE: AtomicU64 = AtomicU64::new(0);

fn prepared<'c>(connection: &'c Connection, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
    MADE.fetch_add(1, Ordering::Relaxed);
    connection.prepare_cached(sql)
}

/// Executes a read in a transaction, so that all statements read the same state.
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

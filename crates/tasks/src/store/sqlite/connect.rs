//! Creates the file if necessary, and configures each connection.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rusqlite::{Connection, OpenFlags, config::DbConfig};

use super::{
    clock::to_column,
    error::SqliteError,
    options::{SqliteOptions, Synchronous},
    schema,
};
use crate::store::StoreError;

/// Time that SQLite waits for a lock before the writer retries. SQLite's own wait grows to a tenth
/// of a second per attempt, which disadvantages a process that waits long.
const SHORT_WAIT: Duration = Duration::from_millis(10);

/// Number of pages in the write-ahead log before a checkpoint: 16 MiB. Larger than SQLite's default
/// of 4 MiB, so that frequently written pages are copied only once.
const LOG_PAGES: u32 = 4_000;

/// Maximum size of the write-ahead log file after a checkpoint. The file keeps its size below this
/// limit, because growing a file costs more than overwriting it.
const LOG_BYTES: u64 = 64 << 20;

/// Page cache of the writing connection: space for the pages that a group commit changes.
const WRITER_CACHE_KIB: u32 = 4 << 10;

/// Page cache of a reading connection: enough for the upper pages of the indexes. The lower pages
/// of a large file come from the operating system's cache in any case.
const READER_CACHE_KIB: u32 = 1 << 10;

/// Capacity of the statement cache: more than the number of all statements.
const STATEMENTS: usize = 192;

/// Returns the absolute path of the file. Creates the file if necessary, readable only by its user.
pub(super) fn file(path: &Path) -> Result<PathBuf, StoreError> {
    let full = std::path::absolute(path).map_err(|why| no_file(path, &why))?;
    if let Some(folder) = full.parent() {
        fs::create_dir_all(folder).map_err(|why| no_file(folder, &why))?;
    }
    // When a process closes a file, it loses all POSIX locks on the file, including locks of SQLite
    // on another handle. So only a new file is opened here, while no other thread of this process
    // can open it.
    static CREATING: Mutex<()> = Mutex::new(());
    let _alone = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(&full) {
        Ok(_) => Ok(full),
        Err(why) if why.kind() == io::ErrorKind::AlreadyExists => Ok(full),
        Err(why) => Err(no_file(&full, &why)),
    }
}

fn no_file(path: &Path, why: &io::Error) -> StoreError {
    let path = path.display();
    StoreError::Unavailable(format!(
        "`{path}`: {why}; use a file in a folder that the user of this process may write"
    ))
}

/// Opens a writing connection, and applies pending migrations.
pub(super) fn writer(path: &Path, options: &SqliteOptions) -> Result<Connection, SqliteError> {
    let mut connection = open(path, options, WRITER_CACHE_KIB)?;
    // Migrations come first, because the file may belong to another program and must then stay
    // unchanged.
    schema::migrate(&mut connection)?;
    keep_log(&connection, options)?;
    let synchronous = match options.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.execute_batch(&format!(
        "PRAGMA synchronous = {synchronous};
         PRAGMA fullfsync = ON;
         PRAGMA foreign_keys = ON;
         PRAGMA temp_store = MEMORY;",
    ))?;
    // These pragmas return a row with their value.
    for pragma in [
        format!("PRAGMA wal_autocheckpoint = {LOG_PAGES}"),
        format!("PRAGMA journal_size_limit = {LOG_BYTES}"),
    ] {
        connection.query_row(&pragma, [], |_| Ok(()))?;
    }
    connection.busy_timeout(SHORT_WAIT)?;
    Ok(connection)
}

/// Opens a reading connection, even if migrations are pending. Does not use a memory map, because
/// each mapping would count as memory of the process.
pub(super) fn reader(path: &Path, options: &SqliteOptions) -> Result<Connection, SqliteError> {
    let connection = open(path, options, READER_CACHE_KIB)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    Ok(connection)
}

fn open(path: &Path, options: &SqliteOptions, cache_kib: u32) -> Result<Connection, SqliteError> {
    // Each connection stays on its thread. No connection creates the file, because `file` does.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.execute_batch(&format!("PRAGMA cache_size = -{cache_kib}"))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // One plan per statement. Otherwise SQLite prepares a statement again for other parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Switches the file to write-ahead logging, which is permanent.
fn keep_log(connection: &Connection, options: &SqliteOptions) -> Result<(), SqliteError> {
    let deadline = Instant::now() + options.busy_timeout;
    loop {
        let mode =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode.map_err(SqliteError::from) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let why = format!(
                    "write-ahead logging is not available (journal mode is `{mode}`); put the file on a local disk"
                );
                return Err(StoreError::Unavailable(why).into());
            }
            // SQLite does not wait by itself when two processes switch the mode at the same time.
            Err(problem) if problem.is_busy() && Instant::now() < deadline => {
                std::thread::sleep(SHORT_WAIT);
            }
            Err(problem) => return Err(problem),
        }
    }
}

/// Limits the size of the file.
pub(super) fn limit_size(connection: &Connection, bytes: u64) -> Result<(), SqliteError> {
    let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let pages = to_column(bytes) / page.max(1);
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    Ok(())
}

//! Opens the file: makes it if need be, and sets up each connection.

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

/// How long the writer lets SQLite wait for a lock before it asks again. SQLite waits longer each
/// time it asks in vain, up to a tenth of a second; whoever has to wait that long while others
/// come and go is served last.
const SHORT_WAIT: Duration = Duration::from_millis(10);

/// How many pages the log in front of the file holds before it is copied into it: 16 MiB. More
/// than SQLite's 4, because pages that are written again and again are then copied once.
const LOG_PAGES: u32 = 4_000;

/// The log keeps its size when it begins anew, because growing a file costs more than writing it;
/// unless something extraordinary has made it larger than this.
const LOG_BYTES: u64 = 64 << 20;

/// Page cache of the connection that writes: room for the pages that a group commit changes.
const WRITER_CACHE_KIB: u32 = 4 << 10;

/// Page cache of a connection that reads: enough for the upper pages of the indexes. The lower ones
/// of a large file come from the operating system's cache, whatever the size of this one.
const READER_CACHE_KIB: u32 = 1 << 10;

/// All statements there are, and some more.
const STATEMENTS: usize = 80;

/// The file's full name. It is there from now on, for its user alone if it was not before.
pub(super) fn file(path: &Path) -> Result<PathBuf, StoreError> {
    let full = std::path::absolute(path).map_err(|why| no_file(path, &why))?;
    if let Some(folder) = full.parent() {
        fs::create_dir_all(folder).map_err(|why| no_file(folder, &why))?;
    }
    // A process that closes a file gives up all its locks on it, also those that SQLite has taken
    // through another handle. So only a new file is opened here, and only while nobody else of
    // this process can have opened it.
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
        "`{path}`: {why}; name a file in a folder that the user of this process may write"
    ))
}

/// A connection that writes, to a file whose tables are up to date.
pub(super) fn writer(path: &Path, options: &SqliteOptions) -> Result<Connection, SqliteError> {
    let mut connection = open(path, options, WRITER_CACHE_KIB)?;
    // Before anything else is touched: the file may be somebody else's.
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
    // These answer with their value.
    for pragma in [
        format!("PRAGMA wal_autocheckpoint = {LOG_PAGES}"),
        format!("PRAGMA journal_size_limit = {LOG_BYTES}"),
    ] {
        connection.query_row(&pragma, [], |_| Ok(()))?;
    }
    connection.busy_timeout(SHORT_WAIT)?;
    Ok(connection)
}

/// A connection that reads, also a file whose tables are not up to date. It does not map the file:
/// each connection's mapping would count as memory of the process.
pub(super) fn reader(path: &Path, options: &SqliteOptions) -> Result<Connection, SqliteError> {
    let connection = open(path, options, READER_CACHE_KIB)?;
    connection.execute_batch("PRAGMA query_only = ON")?;
    Ok(connection)
}

fn open(path: &Path, options: &SqliteOptions, cache_kib: u32) -> Result<Connection, SqliteError> {
    // Each connection stays with its thread, and none makes a file: that would be another one.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(options.busy_timeout)?;
    connection.execute_batch(&format!("PRAGMA cache_size = -{cache_kib}"))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // One plan for each statement. Otherwise SQLite prepares it again for other parameters.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

/// Has the file write ahead. It stays so.
fn keep_log(connection: &Connection, options: &SqliteOptions) -> Result<(), SqliteError> {
    let deadline = Instant::now() + options.busy_timeout;
    loop {
        let mode =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match mode.map_err(SqliteError::from) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                let why = format!("its log cannot be kept (`{mode}`); put it on a local disk");
                return Err(StoreError::Unavailable(why).into());
            }
            // SQLite does not wait by itself when two ask for this at once.
            Err(problem) if problem.is_busy() && Instant::now() < deadline => {
                std::thread::sleep(SHORT_WAIT);
            }
            Err(problem) => return Err(problem),
        }
    }
}

/// Keeps the file from growing.
pub(super) fn limit_size(connection: &Connection, bytes: u64) -> Result<(), SqliteError> {
    let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let pages = to_column(bytes) / page.max(1);
    connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))?;
    Ok(())
}

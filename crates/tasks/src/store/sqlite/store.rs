//! Opens a file and starts its threads.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use super::{
    changes::Watcher, clock::Clock, connect, error::SqliteError, listeners::Listeners,
    options::SqliteOptions, readers::Readers, state::File, statement, workers::Workers,
    writer::Writer,
};
use crate::store::StoreError;

/// Number of reader threads. Reads mostly wait for the disk, so two threads are enough.
const READERS: usize = 2;

/// A task store in a SQLite file.
///
/// ```
/// use outlive_tasks::store::SqliteStore;
///
/// # let folder = std::env::temp_dir().join(format!("outlive-doc-{}", std::process::id()));
/// let store = SqliteStore::open(folder.join("tasks.db"))?;
/// # drop(store);
/// # std::fs::remove_dir_all(folder).unwrap();
/// # Ok::<(), outlive_tasks::store::StoreError>(())
/// ```
///
/// Dropping the store writes the queued operations first.
pub struct SqliteStore {
    pub(super) file: Arc<File>,
    pub(super) writer: Writer,
    pub(super) readers: Readers,
    pub(super) watcher: Watcher,
}

impl SqliteStore {
    /// Opens or creates a file, and applies pending migrations. Blocks the current thread.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] if the file cannot be opened or written. Returns
    /// [`StoreError::Incompatible`] if the file is not a database, belongs to another program, or
    /// was written by a newer version of this program.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, SqliteOptions::new())
    }

    /// Opens a file with the given options.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`SqliteStore::open`].
    #[expect(clippy::needless_pass_by_value, reason = "callers build the options in place")]
    pub fn open_with(path: impl AsRef<Path>, options: SqliteOptions) -> Result<Self, StoreError> {
        let path = connect::file(path.as_ref())?;
        Self::start(&path, &options).map_err(|problem| problem.with(&path))
    }

    fn start(path: &Path, options: &SqliteOptions) -> Result<Self, SqliteError> {
        let connection = connect::writer(path, options)?;
        let origin = connection.query_row("SELECT random()", [], |row| row.get(0))?;
        let file = Arc::new(File {
            path: path.to_owned(),
            clock: Clock::default(),
            listeners: Listeners::default(),
            workers: Workers::new(path),
            origin,
        });
        let reader = || connect::reader(path, options);
        let readers = (0..READERS).map(|_| reader()).collect::<Result<_, _>>()?;
        let no_thread = |why: std::io::Error| {
            StoreError::Unavailable(format!(
                "cannot start a thread: {why}; raise the thread limit of the process"
            ))
        };
        Ok(Self {
            watcher: Watcher::start(reader()?, Arc::clone(&file), options.poll_interval)
                .map_err(no_thread)?,
            readers: Readers::start(readers).map_err(no_thread)?,
            writer: Writer::start(connection, Arc::clone(&file), options.busy_timeout)
                .map_err(no_thread)?,
            file,
        })
    }

    /// Returns the number of transactions that this process has committed. Callers share
    /// transactions, so under load there are far fewer transactions than operations.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// Returns the number of statements that this process has executed, on all open files. Tests
    /// measure the cost of idle waiting with it.
    pub fn statements() -> u64 {
        statement::made()
    }

    /// Limits the size of the file for this process. The store rejects further data as on a full
    /// disk. The limit ends when the store is dropped.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] if the file cannot be used.
    pub async fn set_max_bytes(&self, bytes: u64) -> Result<(), StoreError> {
        self.writer.write(move |batch| connect::limit_size(batch.connection, bytes)).await
    }

    /// Advances the store's clock, for tests.
    pub fn advance_clock(&self, span: Duration) {
        self.file.clock.shift(span);
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore")
            .field("path", &self.file.path)
            .field("commits", &self.commits())
            .finish_non_exhaustive()
    }
}

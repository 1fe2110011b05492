//! Opens a file and starts its threads.

use std::{fmt, path::Path, sync::Arc, time::Duration};

use super::{
    changes::Watcher, clock::Clock, connect, error::SqliteError, listeners::Listeners,
    options::SqliteOptions, readers::Readers, state::File, statement, workers::Workers,
    writer::Writer,
};
use crate::store::StoreError;

/// How many threads read. They wait for the disk more than they work, and two can.
const READERS: usize = 2;

/// Keeps tasks in a file.
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
/// When it is dropped, what is queued is still written.
pub struct SqliteStore {
    pub(super) file: Arc<File>,
    pub(super) writer: Writer,
    pub(super) readers: Readers,
    pub(super) watcher: Watcher,
}

impl SqliteStore {
    /// Opens a file, or makes it, and brings its tables up to date. It blocks meanwhile.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the file cannot be opened or written;
    /// [`StoreError::Incompatible`] if it is no database, another program's, or was written by a
    /// newer version of this one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, SqliteOptions::new())
    }

    /// Opens a file in another way than by default.
    ///
    /// # Errors
    ///
    /// Like [`SqliteStore::open`].
    #[expect(clippy::needless_pass_by_value, reason = "made where it is given")]
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
            StoreError::Unavailable(format!("no thread for it: {why}; allow the process more"))
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

    /// How many transactions this process has committed. Callers share them: under load there are
    /// far fewer than operations.
    pub fn commits(&self) -> u64 {
        self.writer.commits()
    }

    /// How many statements this process has made, to all files that it has open. Between two
    /// moments in which nobody asks for anything, it says what waiting costs.
    pub fn statements() -> u64 {
        statement::made()
    }

    /// Keeps the file from growing beyond so many bytes; what does not fit is refused like on a
    /// full disk. Holds until it is dropped, for this process.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the file cannot be used.
    pub async fn set_max_bytes(&self, bytes: u64) -> Result<(), StoreError> {
        self.writer.write(move |batch| connect::limit_size(batch.connection, bytes)).await
    }

    /// Moves the store's time, for tests.
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

//! Connects to a database and starts the tasks of its connections.

use std::{fmt, sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{
    connect::{Database, LONGEST},
    error::PostgresError,
    liveness,
    options::PostgresOptions,
    readers::Readers,
    schema,
    state::Shared,
    writer::Writers,
};
use crate::store::StoreError;

/// How many connections read. The database answers one look after the other on each.
const READERS: usize = 2;

/// Keeps tasks in a PostgreSQL database.
///
/// ```no_run
/// use outlive_tasks::store::PostgresStore;
///
/// # async fn connect() -> Result<(), outlive_tasks::store::StoreError> {
/// let store = PostgresStore::connect("postgres://outlive:secret@db.example.com/tasks").await?;
/// # drop(store);
/// # Ok(())
/// # }
/// ```
///
/// It needs PostgreSQL 14 or newer, and sessions of its own: a pooler in front of it must not give
/// connections to somebody else after each transaction.
///
/// Time is the database's. A replica that dies loses its tasks to the others at once, not when its
/// leases end.
///
/// It works in the runtime that it was connected in. When it is dropped, what is queued is still
/// written.
pub struct PostgresStore {
    pub(super) shared: Arc<Shared>,
    pub(super) writers: Writers,
    pub(super) readers: Readers,
}

impl PostgresStore {
    /// Connects to a database, and brings its tables up to date. Must be called inside a runtime.
    ///
    /// The address is the usual one, `postgres://user:password@host:port/database`, with the
    /// usual parameters; `sslmode` and `sslrootcert` mean what they mean elsewhere, and the roots
    /// are the system's if no file is named.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if the database cannot be reached or written;
    /// [`StoreError::Incompatible`] if the schema is another program's, or was written by a newer
    /// version of this one.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(url, PostgresOptions::new()).await
    }

    /// Connects in another way than by default.
    ///
    /// # Errors
    ///
    /// Like [`PostgresStore::connect`].
    pub async fn connect_with(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::new(Database::new(url, options)?, liveness::random()));
        let place = &shared.database.place;
        Box::pin(Self::start(&shared)).await.map_err(|problem| problem.with(place))
    }

    async fn start(shared: &Arc<Shared>) -> Result<Self, PostgresError> {
        let database = &shared.database;
        let mut common = match database.open(|_| {}).await {
            // It will be there in a moment: both may be started together.
            Err(problem) if problem.is_starting() => database.reopen(LONGEST, |_| {}).await?,
            opened => opened?,
        };
        schema::migrate(database, &mut common).await?;
        let lifeline = liveness::open(shared, None).await?;
        let (changed, told) = mpsc::channel(liveness::QUEUE);
        // It ends when the writers have: they hold the other end.
        tokio::spawn(liveness::keep(Arc::clone(shared), lifeline, told));
        let writers = Writers::start(shared, &changed, common);
        Ok(Self { shared: Arc::clone(shared), writers, readers: Readers::new(READERS) })
    }

    /// How many transactions this process has committed. Callers share them: under load there are
    /// far fewer than operations.
    pub fn commits(&self) -> u64 {
        self.writers.commits()
    }

    /// Moves the store's time, for tests.
    pub fn advance_clock(&self, span: Duration) {
        self.shared.shift.add(span);
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("place", &self.shared.database.place)
            .field("commits", &self.commits())
            .finish_non_exhaustive()
    }
}

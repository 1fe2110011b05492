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

/// Number of reading connections. The database executes the reads of each connection in sequence.
const READERS: usize = 2;

/// A task store in a PostgreSQL database.
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
/// The store requires PostgreSQL 14 or newer, and its own database sessions: a connection pooler
/// must not use transaction pooling.
///
/// All times are from the clock of the database. Other replicas reclaim the tasks of a dead replica
/// within moments, before its leases expire.
///
/// The store runs in the Tokio runtime that it was connected in. Dropping the store writes the
/// queued operations first.
pub struct PostgresStore {
    pub(super) shared: Arc<Shared>,
    pub(super) writers: Writers,
    pub(super) readers: Readers,
}

impl PostgresStore {
    /// Connects to a database, and applies pending migrations. Must be called inside a Tokio
    /// runtime.
    ///
    /// The URL is `postgres://user:password@host:port/database` with the usual libpq parameters,
    /// including `sslmode` and `sslrootcert`. Without `sslrootcert`, the store trusts the root
    /// certificates of the system.
    ///
    /// # Errors
    ///
    /// Returns [`StoreError::Unavailable`] if the database cannot be reached or written. Returns
    /// [`StoreError::Incompatible`] if the schema belongs to another program, or was written by a
    /// newer version of this program.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(url, PostgresOptions::new()).await
    }

    /// Connects with the given options.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`PostgresStore::connect`].
    pub async fn connect_with(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::new(Database::new(url, options)?, liveness::random()));
        let place = &shared.database.place;
        Box::pin(Self::start(&shared)).await.map_err(|problem| problem.with(place))
    }

    async fn start(shared: &Arc<Shared>) -> Result<Self, PostgresError> {
        let database = &shared.database;
        let mut common = match database.open(|_| {}).await {
            // The database and this process may have been started together, so a starting database
            // is retried.
            Err(problem) if problem.is_starting() => database.reopen(LONGEST, |_| {}).await?,
            opened => opened?,
        };
        schema::migrate(database, &mut common).await?;
        let lifeline = liveness::open(shared, None).await?;
        let (changed, told) = mpsc::channel(liveness::QUEUE);
        // The task ends when the writers are dropped, because they hold the senders.
        tokio::spawn(liveness::keep(Arc::clone(shared), lifeline, told));
        let writers = Writers::start(shared, &changed, common);
        Ok(Self { shared: Arc::clone(shared), writers, readers: Readers::new(READERS) })
    }

    /// Returns the number of transactions that this process has committed. Callers share
    /// transactions, so under load there are far fewer transactions than operations.
    pub fn commits(&self) -> u64 {
        self.writers.commits()
    }

    /// Advances the store's clock, for tests.
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

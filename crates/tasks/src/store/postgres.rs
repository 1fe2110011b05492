//! A store in a PostgreSQL database, which several replicas share: any of them may take the call, run
//! the task, answer the poll, receive the answer.
//!
//! A few connections write, and commit what many callers want in one transaction each (`writer`,
//! `batch`); two read (`readers`); one says that this process lives, and hears what others have
//! changed (`lifeline`). The other files are the operations, named like those of the contract: each
//! is one call of a function that the schema brings along (`schema/*.sql`).

mod audit;
mod batch;
mod changes;
mod claim;
mod clock;
mod column;
mod commit;
mod connect;
mod copy;
mod create;
mod end;
mod error;
mod key_value;
mod liveness;
mod operator;
mod pipelined_copy;
mod probe;
mod read;
mod readers;
mod respond;
mod schema;
mod statement;
mod tls;
mod url;
mod writer;

pub(super) use probe::probe;

use std::{
    fmt,
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use outlive_wire::RawJson;
use tokio::sync::{mpsc, oneshot};

use self::{
    changes::Listeners,
    clock::Shift,
    column::owned,
    commit::Writing,
    connect::{Database, LONGEST},
    create::Creation,
    error::Problem,
    readers::Readers,
    statement::Said,
    writer::{Order, Writers},
};
use super::{
    AuditEvent, AuditRecord, CancelOutcome, ChangeListener, ChangeSource, Changes, Charge, Claim,
    ClaimedTask, CleanupState, CreateOutcome, IdempotencyKey, Inbox, InputSource, Lease,
    ListCursor, NewTask, PageLimit, Store, StoreError, StoreFuture, StoreStats, StoredSegments,
    SweepReport, TaskId, TaskRecord, Transition, WorkerId,
};

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
    shared: Arc<Shared>,
    writers: Writers,
    readers: Readers,
}

/// How a database is used.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    schema: String,
    writers: usize,
    connect_timeout: Duration,
    statement_timeout: Duration,
}

/// What all connections of a process know.
struct Shared {
    database: Database,
    shift: Shift,
    listeners: Arc<Listeners>,
    /// A random number that says which changes are ours.
    origin: i64,
    /// The lock that says that this process lives.
    lock: AtomicI64,
}

impl Shared {
    fn lock(&self) -> i64 {
        self.lock.load(Ordering::Relaxed)
    }

    fn set_lock(&self, lock: i64) {
        self.lock.store(lock, Ordering::Relaxed);
    }
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
        let shared = Arc::new(Shared {
            database: Database::new(url, options)?,
            shift: Shift::default(),
            listeners: Arc::default(),
            origin: liveness::random(),
            lock: AtomicI64::new(0),
        });
        let place = &shared.database.place;
        Box::pin(Self::start(&shared)).await.map_err(|problem| problem.with(place))
    }

    async fn start(shared: &Arc<Shared>) -> Result<Self, Problem> {
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

impl PostgresOptions {
    /// What is right for most.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// In which schema of the database tasks are kept: `outlive`, unless another is named. It is
    /// made if it is not there.
    #[must_use]
    pub fn with_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// How many connections write tasks: two by default. The fewer there are, the more callers share
    /// a statement and a commit; more are worth it where commits take long. There may be as many more
    /// that make tasks, and four for everything else. All but two are opened when they are first
    /// needed.
    #[must_use]
    pub fn write_connections(mut self, writers: usize) -> Self {
        self.writers = writers.max(1);
        self
    }

    /// How long to try to reach the database, at first and when it was lost. Five seconds by
    /// default.
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// After which time the database gives up on a statement. Ten seconds by default.
    #[must_use]
    pub fn with_statement_timeout(mut self, statement_timeout: Duration) -> Self {
        self.statement_timeout = statement_timeout;
        self
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            schema: "outlive".to_owned(),
            writers: 2,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(10),
        }
    }
}

/// An operation on one task.
fn on(task: &TaskId) -> Order {
    Order::Task(task.clone())
}

/// Nobody hears of what is no task.
fn unheard<T>(answer: Result<T, Problem>) -> Result<Said<T>, Problem> {
    answer.map(Said::new)
}

impl PostgresStore {
    /// Writes what a worker has done in a statement of its own.
    fn write_alone<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (task, call) =
                (lease.task.clone(), commit::alone(lease, changes, then, &self.shared)?);
            let read = move |rows: Vec<_>| {
                commit::read(&rows)?;
                Ok(Said::changing((), &task, ChangeSource::Worker))
            };
            self.writers.write(on(&lease.task), call, read).await
        })
    }
}

impl Store for PostgresStore {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        let (answer, answered) = oneshot::channel();
        let creation = Creation::new(task, answer);
        Box::pin(async move { self.writers.create(creation?, answered).await })
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        let call = create::made(principal, once);
        let read = |rows: Vec<_>| create::read_made(&rows, once);
        Box::pin(self.readers.read(&self.shared, call, read))
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        let read = |rows: Vec<_>| Ok(read::read(&rows)?.pop());
        Box::pin(self.readers.read(&self.shared, read::view(principal, task), read))
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        let call = read::segments(principal, task, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read_segments(&rows)))
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        let call = read::list(principal, origin, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read(&rows)))
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        let call = claim::claim(&self.shared, worker, lease, claim);
        let by = worker.clone();
        Box::pin(async move {
            let read = move |rows: Vec<_>| claim::read_claimed(&rows, &by);
            let brought = self.writers.write(Order::Alone, call, read).await?;
            for (lease, problem) in &brought.unreadable {
                let (task, why) = (&lease.task, problem.with(&self.shared.database.place));
                tracing::error!(%task, %why, "a task cannot be read, and is not run");
                let call = claim::postpone(lease);
                self.writers.write(on(task), call, |_| Ok(Said::new(()))).await?;
            }
            Ok(brought.claimed)
        })
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
        let call = claim::renew(&self.shared, worker, lease);
        let by = worker.clone();
        let read = move |rows: Vec<_>| claim::read_renewed(&rows, &by);
        Box::pin(self.writers.write(Order::Alone, call, read))
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        let call = claim::release(&self.shared, worker);
        Box::pin(self.writers.write(Order::Alone, call, |rows| claim::read_released(&rows)))
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        match Writing::of(lease, changes, then) {
            // Most are; a future that carried everything would be made for each.
            Ok(Some(writing)) => {
                let written = self.writers.write_plain(writing);
                Box::pin(async move {
                    match written.await {
                        // That may be too much; alone it is looked at closely.
                        Err(StoreError::OverBytes) => self.write_alone(lease, changes, then).await,
                        written => written,
                    }
                })
            }
            Ok(None) => self.write_alone(lease, changes, then),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        let call = end::clean_up(&self.shared, lease, now);
        let task = lease.task.clone();
        let read = move |rows: Vec<_>| end::read_clean_up(&rows, &task, now);
        Box::pin(self.writers.write(on(&lease.task), call, read))
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        let read = |rows: Vec<_>| respond::read_heard(&rows);
        Box::pin(self.readers.read(&self.shared, respond::heard(lease), read))
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        Box::pin(async move {
            let call = respond::answer(&self.shared, principal, task, from, &answers, max_bytes)?;
            let answered = task.clone();
            let read = move |rows: Vec<_>| respond::read(&rows, &answered);
            self.writers.write(on(task), call, read).await
        })
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        Box::pin(async move {
            let call = end::cancel(&self.shared, principal, task, at_once, retention)?;
            let cancelled = task.clone();
            let read = move |rows: Vec<_>| end::read_cancelled(&rows, &cancelled);
            self.writers.write(on(task), call, read).await
        })
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        Box::pin(async move {
            let call = end::sweep(&self.shared, limit, retention)?;
            self.writers.write(Order::Alone, call, |rows| end::read_swept(&rows)).await
        })
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        let call = key_value::put(&self.shared, key, &note, ttl, false, charge);
        let order = Order::Note(owned(key));
        Box::pin(self.writers.write(order, call, |rows| unheard(key_value::read_put(&rows))))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        let call = key_value::put(&self.shared, key, &note, ttl, true, charge);
        let read = |rows: Vec<_>| unheard(key_value::read_put(&rows).map(drop));
        Box::pin(self.writers.write(Order::Note(owned(key)), call, read))
    }

    fn kept<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        let call = key_value::kept(&self.shared, key);
        Box::pin(self.readers.read(&self.shared, call, |rows| key_value::read(&rows)))
    }

    fn forget<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let order = Order::Note(owned(key));
        Box::pin(self.writers.write(order, key_value::forget(key), |_| unheard(Ok(()))))
    }

    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()> {
        let call = audit::record(&self.shared, &events, retention, max_events);
        Box::pin(self.writers.write(Order::Event, call, |_| unheard(Ok(()))))
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        let call = audit::audit(task, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| audit::read(&rows)))
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        let call = read::census(&self.shared);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read_census(&rows)))
    }

    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.readers.read(&self.shared, read::ready(), |_| Ok(())))
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        let call = read::stored_bytes(principal);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read_stored_bytes(&rows)))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let call = claim::next_due(&self.shared, except);
        Box::pin(self.readers.read(&self.shared, call, |rows| claim::read_due(&rows)))
    }

    fn subscribe(&self, listener: ChangeListener) {
        self.shared.listeners.add(listener);
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

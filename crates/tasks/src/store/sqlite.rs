//! A store in one file: what is acknowledged is on the disk, and several processes may share it.
//!
//! One thread writes, and commits what many callers want in one transaction (`writer`); two threads
//! read (`readers`); one looks for what other processes have changed (`watch`). None of it runs on
//! the threads of the runtime. The other files are the operations, named like those of the
//! contract, and what they share.

mod audit;
mod change_log;
mod changes;
mod claim;
mod clock;
mod column;
mod commit;
mod connect;
mod create;
mod end;
mod error;
mod journal;
mod key_value;
mod open_tasks;
mod operator;
mod phase_counts;
mod probe;
#[cfg(test)]
mod query_plans;
mod questions;
mod read;
mod readers;
mod respond;
mod room;
mod schema;
mod statement;
mod workers;
mod writer;

pub(super) use probe::probe;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use outlive_wire::RawJson;

use self::{
    changes::{Listeners, Watcher},
    clock::{Clock, from_column},
    error::Problem,
    readers::{Readers, in_one_piece},
    workers::Workers,
    writer::{Batch, Writer},
};
use super::{
    AuditEvent, AuditRecord, CancelOutcome, ChangeListener, Changes, Charge, Claim, ClaimedTask,
    CleanupState, CreateOutcome, IdempotencyKey, Inbox, InputSource, Lease, ListCursor, NewTask,
    PageLimit, Store, StoreError, StoreFuture, StoreStats, StoredSegments, SweepReport, TaskId,
    TaskRecord, Transition, WorkerId,
};

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
    file: Arc<File>,
    writer: Writer,
    readers: Readers,
    watcher: Watcher,
}

/// How a file is used.
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    durability: Synchronous,
    lock_timeout: Duration,
    watch_every: Duration,
}

/// What survives a power cut. Whatever happens to the process, nothing is lost with either.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// Everything that was acknowledged.
    #[default]
    Full,
    /// Everything but the last moments. The file stays whole.
    Normal,
}

/// What all threads know of a file.
struct File {
    path: PathBuf,
    clock: Clock,
    listeners: Listeners,
    workers: Workers,
    /// A random number that says which changes are ours.
    origin: i64,
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

    fn start(path: &Path, options: &SqliteOptions) -> Result<Self, Problem> {
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
            watcher: Watcher::start(reader()?, Arc::clone(&file), options.watch_every)
                .map_err(no_thread)?,
            readers: Readers::start(readers).map_err(no_thread)?,
            writer: Writer::start(connection, Arc::clone(&file), options.lock_timeout)
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

impl SqliteOptions {
    /// What is right for most.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What survives a power cut: everything, unless something else is said.
    #[must_use]
    pub fn synchronous(mut self, durability: Synchronous) -> Self {
        self.durability = durability;
        self
    }

    /// How long to wait while another process writes. Five seconds by default.
    #[must_use]
    pub fn busy_timeout(mut self, lock_timeout: Duration) -> Self {
        self.lock_timeout = lock_timeout;
        self
    }

    /// How often to look for changes by other processes, while somebody listens: every 100
    /// milliseconds by default. When nothing has changed for a while, ten times less often.
    #[must_use]
    pub fn poll_interval(mut self, watch_every: Duration) -> Self {
        self.watch_every = watch_every;
        self
    }
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            durability: Synchronous::Full,
            lock_timeout: Duration::from_secs(5),
            watch_every: Duration::from_millis(100),
        }
    }
}

impl Store for SqliteStore {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        Box::pin(self.writer.write(move |batch| create::create(batch, &task)))
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        let (principal, once) = (principal.to_owned(), once.clone());
        let look = move |connection: &_| create::made(connection, &principal, &once);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let look = move |connection: &_| read::view(connection, &principal, &task);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| {
                read::segments(connection, &principal, &task, after, limit)
            })
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        let (principal, origin) = (principal.to_owned(), origin.to_owned());
        let after = after.cloned();
        let look = move |connection: &_| {
            read::list(connection, &principal, &origin, after.as_ref(), limit)
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        let (worker, file) = (worker.clone(), Arc::clone(&self.file));
        let claim = Arc::new(claim.clone());
        Box::pin(async move {
            // Whoever has nothing to do asks again and again, and must not lock the file for it.
            let wish = Arc::clone(&claim);
            let look = move |connection: &_| claim::due(connection, &file, &wish);
            let Some(dead) = self.readers.read(&self.file, look).await? else {
                return Ok(Vec::new());
            };
            let claim =
                move |batch: &mut Batch<'_>| claim::claim(batch, &worker, lease, &claim, &dead);
            self.writer.write(claim).await
        })
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
        let worker = worker.clone();
        Box::pin(self.writer.write(move |batch| claim::renew(batch, &worker, lease)))
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        let worker = worker.clone();
        Box::pin(self.writer.write(move |batch| claim::release(batch, &worker)))
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        let (lease, changes, then) = (lease.clone(), changes.clone(), then.clone());
        Box::pin(self.writer.write(move |batch| commit::write(batch, &lease, &changes, &then)))
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        let lease = lease.clone();
        Box::pin(self.writer.write(move |batch| end::clean_up(batch, &lease, now)))
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        let lease = lease.clone();
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| claim::heard(connection, &lease))
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let answer = move |batch: &mut Batch<'_>| {
            respond::answer(batch, &principal, &task, from, &answers, max_bytes)
        };
        Box::pin(self.writer.write(answer))
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let cancel =
            move |batch: &mut Batch<'_>| end::cancel(batch, &principal, &task, at_once, retention);
        Box::pin(self.writer.write(cancel))
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        Box::pin(self.writer.write(move |batch| end::sweep(batch, limit, retention)))
    }

    fn keep<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, Option<RawJson>> {
        let (key, charge) = (key.to_owned(), charge.cloned());
        let keep =
            move |batch: &mut Batch<'_>| key_value::keep(batch, &key, &note, ttl, charge.as_ref());
        Box::pin(self.writer.write(keep))
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        note: RawJson,
        ttl: Duration,
        charge: Option<&'a Charge>,
    ) -> StoreFuture<'a, ()> {
        let (key, charge) = (key.to_owned(), charge.cloned());
        let replace = move |batch: &mut Batch<'_>| {
            key_value::replace(batch, &key, &note, ttl, charge.as_ref())
        };
        Box::pin(self.writer.write(replace))
    }

    fn kept<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<RawJson>> {
        let (key, file) = (key.to_owned(), Arc::clone(&self.file));
        let look = move |connection: &_| key_value::kept(connection, &key, file.clock.now());
        Box::pin(self.readers.read(&self.file, look))
    }

    fn forget<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        let key = key.to_owned();
        Box::pin(self.writer.write(move |batch| key_value::forget(batch, &key)))
    }

    fn record(
        &self,
        events: Vec<AuditEvent>,
        retention: Duration,
        max_events: u64,
    ) -> StoreFuture<'_, ()> {
        let record =
            move |batch: &mut Batch<'_>| audit::record(batch, &events, retention, max_events);
        Box::pin(self.writer.write(record))
    }

    fn audit<'a>(
        &'a self,
        task: Option<&'a str>,
        after: u64,
        limit: usize,
    ) -> StoreFuture<'a, Vec<AuditRecord>> {
        let task = task.map(str::to_owned);
        let look = move |connection: &_| audit::audit(connection, task.as_deref(), after, limit);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        let file = Arc::clone(&self.file);
        let look = move |connection: &_| phase_counts::census(connection, file.clock.now());
        Box::pin(self.readers.read(&self.file, look))
    }

    fn ready(&self) -> StoreFuture<'_, ()> {
        Box::pin(self.readers.read(&self.file, phase_counts::ready))
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        let principal = principal.to_owned();
        let look =
            move |connection: &_| Ok(from_column(open_tasks::bytes(connection, &principal)?));
        Box::pin(self.readers.read(&self.file, look))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let (file, except) = (Arc::clone(&self.file), except.to_vec());
        let look = move |connection: &_| claim::next_due(connection, file.clock.now(), &except);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn subscribe(&self, listener: ChangeListener) {
        self.watcher.listen(&self.file, listener);
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

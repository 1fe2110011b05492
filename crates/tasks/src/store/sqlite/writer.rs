//! The writer thread and its group commits.
//!
//! The thread takes the queued operations, executes them in one transaction, commits once, and then
//! replies to the callers. No timer is necessary: during a commit, the next operations accumulate.
//!
//! A failed operation does not affect the others. Nearly all failures are rejections by the first
//! statement, which have written nothing. After any other failure, the batch is executed again with
//! a savepoint per operation. Savepoints from the start would cost a third of the throughput.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{
    batch::{Batch, Changed, Counts},
    change_log,
    error::SqliteError,
    state::File,
    statement::run,
};
use crate::store::StoreError;

/// Capacity of the queue. Further callers wait until the queue has space.
const QUEUE: usize = 1_024;

/// Maximum number of operations per commit. A larger batch saves little and delays other processes.
const BATCH: usize = 512;

/// Handle to the writer thread. After its drop, the thread finishes the queued operations and ends.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Box<dyn Operation>>,
    commits: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        file: Arc<File>,
        lock_timeout: Duration,
    ) -> io::Result<Self> {
        let (queue, queued) = mpsc::channel(QUEUE);
        let commits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&commits);
        let thread = Thread { connection, queued, file, lock_timeout, commits: counted };
        thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || thread.serve())?;
        Ok(Self { queue, commits })
    }

    /// Executes `work` on the writer thread. A queued operation is executed even if its caller is
    /// dropped. `work` may run twice if its first transaction is rolled back.
    // Not an async fn, because its future would reserve space for `work` in addition to the box.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> Result<T, SqliteError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let gone =
            || StoreError::Unavailable("the writer thread has ended; restart the process".into());
        let operation = Box::new(Queued { work, result: None, answer });
        async move {
            self.queue.send(operation).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        }
    }

    /// Returns the number of commits.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

/// An operation that a caller waits for.
trait Operation: Send {
    /// Executes the operation.
    fn work(&mut self, batch: &mut Batch<'_>) -> Worked;

    /// Returns whether the operation failed because the disk is full.
    fn had_no_space(&self) -> bool;

    /// Replies to the caller after the commit or its failure.
    fn answer(self: Box<Self>, file: &File, committed: Result<(), StoreError>);
}

/// Effect of an operation on the transaction.
#[derive(PartialEq, Eq)]
enum Worked {
    /// Complete, or none.
    Well,
    /// Possibly partial.
    Badly,
}

struct Queued<T, F> {
    work: F,
    result: Option<Result<T, SqliteError>>,
    answer: oneshot::Sender<Result<T, StoreError>>,
}

impl<T: Send, F> Operation for Queued<T, F>
where
    F: FnMut(&mut Batch<'_>) -> Result<T, SqliteError> + Send,
{
    fn work(&mut self, batch: &mut Batch<'_>) -> Worked {
        let result = (self.work)(batch);
        let worked = match &result {
            Ok(_) => Worked::Well,
            Err(problem) if problem.is_refusal() => Worked::Well,
            Err(_) => Worked::Badly,
        };
        self.result = Some(result);
        worked
    }

    fn had_no_space(&self) -> bool {
        matches!(&self.result, Some(Err(problem)) if problem.is_full_disk())
    }

    fn answer(self: Box<Self>, file: &File, committed: Result<(), StoreError>) {
        let result = match (committed, self.result) {
            (Ok(()), Some(result)) => result.map_err(|problem| problem.with(&file.path)),
            // The operation's own error is more specific than the error of the commit.
            (Err(_), Some(Err(problem))) => Err(problem.with(&file.path)),
            (Err(why), _) => Err(why),
            (Ok(()), None) => {
                Err(StoreError::Unavailable("the operation was not executed".to_owned()))
            }
        };
        // The caller may have been dropped. The operation has taken effect in any case.
        let _ = self.answer.send(result);
    }
}

struct Thread {
    connection: Connection,
    queued: mpsc::Receiver<Box<dyn Operation>>,
    file: Arc<File>,
    lock_timeout: Duration,
    commits: Arc<AtomicU64>,
}

impl Thread {
    fn serve(mut self) {
        while let Some(first) = self.queued.blocking_recv() {
            let mut done = Vec::new();
            match self.transaction(first, &mut done) {
                Ok(changed) => {
                    let refused = done.iter().filter(|one| one.had_no_space()).count();
                    if refused > 0 {
                        let path = self.file.path.display();
                        tracing::error!(
                            %path, refused, "the disk of the store is full; free some space"
                        );
                    }
                    for operation in done {
                        operation.answer(&self.file, Ok(()));
                    }
                    for Changed { task, by, .. } in &changed {
                        self.file.listeners.notify(task, *by);
                    }
                    // Callers that received their reply may queue more writes for the next commit.
                    thread::yield_now();
                }
                Err(problem) => {
                    self.roll_back();
                    let why = unavailable(problem.with(&self.file.path));
                    tracing::error!(
                        error = %why,
                        operations = done.len(),
                        "could not write to the store"
                    );
                    for operation in done {
                        operation.answer(&self.file, Err(why.clone()));
                    }
                }
            }
        }
    }

    /// Executes `first` and the queued operations, and commits them. Every operation that was taken
    /// is in `done`, even after an error.
    fn transaction(
        &mut self,
        first: Box<dyn Operation>,
        done: &mut Vec<Box<dyn Operation>>,
    ) -> Result<Vec<Changed>, SqliteError> {
        let mut next = Some(first);
        if let Err(problem) = self.begin() {
            // Operations that arrived in the meantime would wait for the same lock.
            done.extend(next);
            while let Ok(operation) = self.queued.try_recv() {
                done.push(operation);
            }
            return Err(problem);
        }
        let (connection, file) = (&self.connection, &*self.file);
        let mut batch = Batch { connection, file, changed: Vec::new(), counts: Counts::default() };
        // Index of the first operation that is not executed, and whether to use savepoints.
        let (mut from, mut apart) = (0, false);
        while let Some(operation) = next {
            done.push(operation);
            if !apart && done[from..].iter_mut().any(|next| next.work(&mut batch) == Worked::Badly)
            {
                self.roll_back();
                self.begin()?;
                batch.changed.clear();
                batch.counts = Counts::default();
                (from, apart) = (0, true);
            }
            if apart {
                for operation in &mut done[from..] {
                    work_apart(&mut batch, operation.as_mut())?;
                }
            }
            from = done.len();
            next = match from < BATCH {
                true => self.queued.try_recv().ok(),
                false => None,
            };
        }
        batch.counts.moves.write(connection)?;
        batch.counts.open.write(connection)?;
        let changed = batch.changed;
        if !changed.is_empty() {
            change_log::append(connection, file.origin, &changed)?;
        }
        run(connection, "COMMIT", [])?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(changed)
    }

    /// Starts a transaction with the write lock, which one process has at a time.
    fn begin(&self) -> Result<(), SqliteError> {
        let deadline = Instant::now() + self.lock_timeout;
        loop {
            match run(&self.connection, "BEGIN IMMEDIATE", []).map_err(SqliteError::from) {
                Ok(_) => return Ok(()),
                Err(problem) if problem.is_busy() && Instant::now() < deadline => {}
                Err(problem) => return Err(problem),
            }
        }
    }

    fn roll_back(&self) {
        // SQLite rolls back by itself after some errors.
        if !self.connection.is_autocommit()
            && let Err(error) = run(&self.connection, "ROLLBACK", [])
        {
            tracing::error!(%error, "could not roll back a transaction");
        }
    }
}

/// Executes one operation inside a savepoint, so that a failure leaves no changes.
fn work_apart(batch: &mut Batch<'_>, operation: &mut dyn Operation) -> Result<(), SqliteError> {
    let connection = batch.connection;
    let (changed, counts) = (batch.changed.len(), batch.counts.clone());
    run(connection, "SAVEPOINT operation", [])?;
    if operation.work(batch) == Worked::Badly {
        batch.changed.truncate(changed);
        batch.counts = counts;
        // On a full disk, SQLite may roll back the whole transaction, including the operations
        // before this one.
        if connection.is_autocommit() {
            let why = "the disk is full or broken; free some space, or check the disk";
            return Err(StoreError::Unavailable(why.to_owned()).into());
        }
        run(connection, "ROLLBACK TO operation", [])?;
    }
    run(connection, "RELEASE operation", [])?;
    Ok(())
}

/// Converts an error for the other operations of the commit. The incompatible data belongs to one
/// operation, so the others may retry.
fn unavailable(error: StoreError) -> StoreError {
    match error {
        StoreError::LeaseLost | StoreError::BytesExceeded | StoreError::Unavailable(_) => error,
        StoreError::Incompatible(what) => StoreError::Unavailable(what),
    }
}

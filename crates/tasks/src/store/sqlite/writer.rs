//! The one thread that writes, and how many callers share one commit.
//!
//! It takes what is queued, does all of it in one transaction, commits once, and only then answers.
//! There is no timer: while one commit is on its way to the disk, the next operations queue up.
//!
//! An operation that fails spoils none of the others. Nearly all that fail are refused by their
//! first statement and have written nothing. After any other failure the batch is done again, each
//! operation inside of a savepoint. Savepoints from the start would cost a third of the throughput.

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

/// How many operations may wait. A caller beyond that waits for its place in the queue.
const QUEUE: usize = 1_024;

/// How many operations share a commit. More would save nothing and keep other processes waiting.
const BATCH: usize = 512;

/// The way to the thread that writes. When it is dropped, the thread does what is queued and ends.
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

    /// Has something written. Once it is queued it is done, even if nobody waits for it any more. It
    /// may be done twice, if the first time is undone.
    // Not an async fn, whose future would have room for the work beside its box.
    pub(super) fn write<T: Send + 'static>(
        &self,
        work: impl FnMut(&mut Batch<'_>) -> Result<T, SqliteError> + Send + 'static,
    ) -> impl Future<Output = Result<T, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let gone = || StoreError::Unavailable("its writer has ended; restart the process".into());
        let operation = Box::new(Queued { work, result: None, answer });
        async move {
            self.queue.send(operation).await.map_err(|_| gone())?;
            answered.await.map_err(|_| gone())?
        }
    }

    /// How often something was committed.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

/// Something that a caller waits for.
trait Operation: Send {
    /// Does it.
    fn work(&mut self, batch: &mut Batch<'_>) -> Worked;

    /// Whether there was no space on the disk for it.
    fn had_no_space(&self) -> bool;

    /// Tells the caller, once it is known whether what was done is there to stay.
    fn answer(self: Box<Self>, file: &File, committed: Result<(), StoreError>);
}

/// What an operation has left in the transaction.
#[derive(PartialEq, Eq)]
enum Worked {
    /// What it should, or nothing.
    Well,
    /// Perhaps a part of it.
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
            // Its own reason says more than that of the commit.
            (Err(_), Some(Err(problem))) => Err(problem.with(&file.path)),
            (Err(why), _) => Err(why),
            (Ok(()), None) => Err(StoreError::Unavailable("it was not done".to_owned())),
        };
        // Nobody may wait any more; it is done all the same.
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
                            %path, refused, "the disk of the store is full; free some space on it"
                        );
                    }
                    for operation in done {
                        operation.answer(&self.file, Ok(()));
                    }
                    for Changed { task, by, .. } in &changed {
                        self.file.listeners.notify(task, *by);
                    }
                    // Whoever was answered has more to write, and may share the next commit.
                    thread::yield_now();
                }
                Err(problem) => {
                    self.roll_back();
                    let why = unavailable(problem.with(&self.file.path));
                    tracing::error!(error = %why, operations = done.len(), "nothing could be written");
                    for operation in done {
                        operation.answer(&self.file, Err(why.clone()));
                    }
                }
            }
        }
    }

    /// Does this and what else is queued, and commits it. Every operation that it has taken is in
    /// `done` then, whatever happens.
    fn transaction(
        &mut self,
        first: Box<dyn Operation>,
        done: &mut Vec<Box<dyn Operation>>,
    ) -> Result<Vec<Changed>, SqliteError> {
        let mut next = Some(first);
        if let Err(problem) = self.begin() {
            // Whoever has come meanwhile has waited for the same lock.
            done.extend(next);
            while let Ok(operation) = self.queued.try_recv() {
                done.push(operation);
            }
            return Err(problem);
        }
        let (connection, file) = (&self.connection, &*self.file);
        let mut batch = Batch { connection, file, changed: Vec::new(), counts: Counts::default() };
        // From which on they are not done yet, and whether they are kept apart.
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

    /// Gets the lock for writing, which one process has at a time.
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
        // SQLite has done so by itself after some errors.
        if !self.connection.is_autocommit()
            && let Err(error) = run(&self.connection, "ROLLBACK", [])
        {
            tracing::error!(%error, "a transaction could not be rolled back");
        }
    }
}

/// Does one operation so that it leaves nothing behind if it fails.
fn work_apart(batch: &mut Batch<'_>, operation: &mut dyn Operation) -> Result<(), SqliteError> {
    let connection = batch.connection;
    let (changed, counts) = (batch.changed.len(), batch.counts.clone());
    run(connection, "SAVEPOINT operation", [])?;
    if operation.work(batch) == Worked::Badly {
        batch.changed.truncate(changed);
        batch.counts = counts;
        // When the disk is full, SQLite may give up the whole transaction, with what the operations
        // before this one have done.
        if connection.is_autocommit() {
            let why = "its disk is full or broken; free some space, or check it";
            return Err(StoreError::Unavailable(why.to_owned()).into());
        }
        run(connection, "ROLLBACK TO operation", [])?;
    }
    run(connection, "RELEASE operation", [])?;
    Ok(())
}

/// Those who only shared the commit cannot help what was unreadable to somebody.
fn unavailable(error: StoreError) -> StoreError {
    match error {
        StoreError::LeaseLost | StoreError::BytesExceeded | StoreError::Unavailable(_) => error,
        StoreError::Incompatible(what) => StoreError::Unavailable(what),
    }
}

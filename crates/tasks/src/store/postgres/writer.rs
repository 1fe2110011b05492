//! The write connections and their group commits.
//!
//! Each write connection has a queue. The connection takes the queued operations, sends them
//! pipelined in one transaction, and replies after the commit. No timer is necessary: during a
//! commit, the next operations accumulate. New tasks have their own insert connections, where a
//! batch of only new tasks uses the faster `copy`. Recorded steps and ended tasks also have faster
//! statements, if their connection executes nothing else. All other operations are assigned to a
//! connection by task ID.
//!
//! A failed operation does not affect the others. Most functions of the schema reject an operation
//! without an SQL error. After any other failure, the batch is executed again with a savepoint per
//! operation.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    sync::{
        mpsc::{self, error::TrySendError},
        oneshot,
    },
    task::yield_now,
    time::timeout,
};
use tokio_postgres::Row;

use super::{
    batch::{Batch, Outcome, WORTH_A_COMMIT},
    commit::{QueuedWrite, WriteKind, Writing},
    connect::{LONGEST, Session},
    create::Creation,
    error::{PostgresError, Reach},
    queue::{Order, Queued, Work},
    state::Shared,
    statement::{Call, CallResult, Query, Sent, pipelined, reply},
};
use crate::store::{CreateOutcome, StoreError, TaskId};

/// Capacity of a queue. Further callers wait until the queue has space.
const QUEUE: usize = 1_024;

/// Number of concurrent creations below which one connection handles all of them.
const FEW: usize = 128;

/// Queues of the connections. After their drop, the connections finish the queued operations and
/// end.
#[derive(Debug)]
pub(super) struct Writers {
    write: Vec<mpsc::Sender<Work>>,
    /// Queues for new tasks. No other operation writes to a new task, so a batch of only new tasks
    /// can be copied.
    insert: Vec<mpsc::Sender<Work>>,
    /// Held by every caller that waits for a new task, as a count of concurrent creations.
    inserting: Arc<()>,
    /// Queue for operations on many tasks, so that they never delay operations on one task.
    common: mpsc::Sender<Work>,
    commits: Arc<AtomicU64>,
}

impl Writers {
    pub(super) fn start(
        shared: &Arc<Shared>,
        changed: &mpsc::Sender<Vec<TaskId>>,
        common: Session,
    ) -> Self {
        let commits = Arc::new(AtomicU64::new(0));
        let connection = |session: Option<Session>| {
            let (queue, queued) = mpsc::channel(QUEUE);
            let connection = WriteConnection {
                shared: Arc::clone(shared),
                queue: Queue { queued, next: None },
                session,
                telling: Telling { shared: Arc::clone(shared), changed: changed.clone() },
                commits: Arc::clone(&commits),
            };
            // The task ends when all senders of its queue are dropped.
            tokio::spawn(connection.serve());
            queue
        };
        let count = shared.database.options.write_connections;
        let connections = || (0..count).map(|_| connection(None)).collect();
        Self {
            write: connections(),
            insert: connections(),
            inserting: Arc::default(),
            common: connection(Some(common)),
            commits,
        }
    }

    /// Executes a call. A queued call is executed even if its caller is dropped.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        order: Order,
        call: Call,
        read: impl FnOnce(Vec<Row>) -> Result<CallResult<T>, PostgresError> + Send + Sync + 'static,
    ) -> Result<T, StoreError> {
        let queue = match &order {
            Order::Alone | Order::Event => &self.common,
            Order::Note(name) => one_of(&self.write, name),
            Order::Task(task) => one_of(&self.write, task.as_str()),
        };
        let (reply, answered) = reply(read);
        queue.send(Work::Call(Queued { call, order, reply })).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Creates a task.
    pub(super) async fn create(
        &self,
        creation: Box<Creation>,
        answered: oneshot::Receiver<Result<CreateOutcome, StoreError>>,
    ) -> Result<CreateOutcome, StoreError> {
        let inserting = Arc::clone(&self.inserting);
        // Few creations share one connection, because each batch has a high fixed cost. Many
        // creations are distributed by principal, because creations of one principal wait for the
        // same lock.
        let queue = match Arc::strong_count(&inserting) < FEW {
            true => &self.insert[0],
            false => one_of(&self.insert, &creation.task.principal),
        };
        queue.send(Work::Create(creation)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Executes a commit that can be combined with others.
    pub(super) fn write_plain(
        &self,
        writing: Writing,
    ) -> impl Future<Output = Result<(), StoreError>> {
        let (answer, answered) = oneshot::channel();
        // Commits of the same kind share a specialized statement, which is faster.
        let (ends, steps) = self.write.split_at(self.write.len() / 2);
        let queues = match writing.kind() {
            WriteKind::Record => steps,
            WriteKind::End if !ends.is_empty() => ends,
            WriteKind::End | WriteKind::Any => &self.write,
        };
        let queue = one_of(queues, writing.task().as_str());
        // The queue nearly always has space, and a future that could wait for it would be large.
        let queued = queue.try_send(Work::Write(Box::new(QueuedWrite { writing, answer })));
        async move {
            match queued {
                Ok(()) => {}
                Err(TrySendError::Full(work)) => {
                    Box::pin(queue.send(work)).await.map_err(|_| gone())?;
                }
                Err(TrySendError::Closed(_)) => return Err(gone()),
            }
            answered.await.map_err(|_| gone())?
        }
    }

    /// Returns the number of commits.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

/// Returns the queue for a name, which is always the same.
fn one_of<'a>(queues: &'a [mpsc::Sender<Work>], name: &str) -> &'a mpsc::Sender<Work> {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    &queues[(hasher.finish() % queues.len() as u64) as usize]
}

fn gone() -> StoreError {
    StoreError::Unavailable(
        "the write connection has ended with its Tokio runtime; connect again".to_owned(),
    )
}

pub(super) struct WriteConnection {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: Queue,
    pub(super) session: Option<Session>,
    pub(super) telling: Telling,
    pub(super) commits: Arc<AtomicU64>,
}

/// Receiving end of a queue.
pub(super) struct Queue {
    queued: mpsc::Receiver<Work>,
    /// Operation that did not fit into the previous batch.
    next: Option<Work>,
}

impl Queue {
    /// Waits for the next batch. Returns `None` after the queue is closed.
    async fn first(&mut self) -> Option<Batch> {
        let first = match self.next.take() {
            Some(first) => first,
            None => self.queued.recv().await?,
        };
        // Callers that received their replies together also send their next operations together.
        // Two yields let them queue these operations, so that all share a commit.
        for _ in 0..2 {
            yield_now().await;
        }
        Some(self.batch(first))
    }

    /// Returns another batch if enough operations wait to justify a commit.
    pub(super) fn more(&mut self) -> Option<Batch> {
        if self.queued.len() < WORTH_A_COMMIT {
            return None;
        }
        let first = self.next.take().or_else(|| self.queued.try_recv().ok())?;
        Some(self.batch(first))
    }

    fn batch(&mut self, first: Work) -> Batch {
        let mut batch = Batch::default();
        self.next = batch.fill(first, || self.queued.try_recv().ok());
        batch
    }

    /// Returns all waiting operations.
    fn drain(&mut self) -> impl Iterator<Item = Work> {
        let next = self.next.take().into_iter();
        next.chain(std::iter::from_fn(|| self.queued.try_recv().ok()))
    }
}

/// Replies to callers, and notifies listeners.
pub(super) struct Telling {
    shared: Arc<Shared>,
    /// Changed tasks, for notifications to other processes.
    changed: mpsc::Sender<Vec<TaskId>>,
}

impl Telling {
    /// Replies to all callers of a batch, and notifies listeners.
    pub(super) fn answer(&self, batch: Batch, outcome: Outcome) {
        let mut changed = Vec::new();
        batch.answer(outcome, &self.shared.database.place, |task, by| {
            self.shared.listeners.tell(&task, by);
            changed.push(task);
        });
        if !changed.is_empty() && self.changed.try_send(changed).is_err() {
            tracing::debug!("change notification dropped; other processes poll");
        }
    }
}

/// Reason why a batch was not executed.
pub(super) enum BatchError {
    /// No statement was sent.
    NotSent(PostgresError),
    /// Whether the batch was committed is unknown.
    Unknown(PostgresError),
    /// The transaction was rolled back for this error.
    Undone(PostgresError),
}

impl WriteConnection {
    async fn serve(mut self) {
        while let Some(batch) = self.queue.first().await {
            match batch.can_be_copied() {
                true => self.copy(batch).await,
                false => self.work(batch).await,
            }
        }
    }

    pub(super) async fn work(&mut self, batch: Batch) {
        let done = self.together(&batch).await;
        self.settle(batch, done).await;
    }

    /// Replies to all callers. After a failure of the whole batch, retries where a retry can help.
    pub(super) async fn settle(&mut self, mut batch: Batch, done: Result<Outcome, BatchError>) {
        match done {
            Ok(outcome) => self.telling.answer(batch, outcome),
            Err(BatchError::NotSent(problem)) => {
                // Operations that arrived in the meantime would wait for the same connection.
                let error = self.failed(&problem);
                batch.refuse(&error);
                self.queue.drain().for_each(|work| Batch::of(work).refuse(&error));
            }
            Err(BatchError::Unknown(problem)) => {
                let error = self.failed(&problem);
                // A repeated creation finds an existing task by its ID. For other operations, only
                // the caller can decide about a retry.
                batch.refuse_all_but_creations(&error);
                batch.creations.iter_mut().for_each(|creation| creation.again = true);
                match self.together(&batch).await {
                    Ok(outcome) => self.telling.answer(batch, outcome),
                    Err(_) => batch.refuse(&error),
                }
            }
            Err(BatchError::Undone(problem))
                if !batch.can_be_done_apart() || problem.reach() == Reach::All =>
            {
                let error = self.failed(&problem);
                batch.refuse(&error);
            }
            Err(BatchError::Undone(_)) => {
                let patience = self.shared.database.patience() * 4;
                let done = timeout(patience, self.apart(&batch)).await;
                match done.unwrap_or(Err(PostgresError::Silent)) {
                    Ok(outcome) => self.telling.answer(batch, outcome),
                    Err(problem) => {
                        let error = self.failed(&problem);
                        batch.refuse(&error);
                        // The connection may be in the middle of a transaction.
                        self.lose(problem);
                    }
                }
            }
        }
    }

    fn failed(&self, problem: &PostgresError) -> StoreError {
        let error = problem.with(&self.shared.database.place);
        tracing::warn!(%error, "could not write to the store");
        error
    }

    /// Executes the batch in one transaction, pipelined.
    async fn together(&mut self, batch: &Batch) -> Result<Outcome, BatchError> {
        let shared = Arc::clone(&self.shared);
        let together = batch.together(&shared);
        let calls: Vec<&Query<'_>> = together.iter().chain(batch.calls()).collect();
        if calls.is_empty() {
            return Ok(Outcome::default());
        }
        let all = calls.iter().map(|call| call.sql);
        let session = self.prepared(all).await.map_err(BatchError::NotSent)?;
        let mut sent: Vec<Sent<'_, Result<Vec<Row>, PostgresError>>> = Vec::new();
        // A single statement is its own transaction.
        let whole = calls.len() > 1;
        if whole {
            sent.push(command(session, "BEGIN"));
        }
        for call in &calls {
            sent.push(Box::pin(call.send(session)));
        }
        if whole {
            sent.push(command(session, "COMMIT"));
        }
        let patience = shared.database.patience();
        let Ok(answers) = timeout(patience, pipelined(sent)).await else {
            return Err(self.lose(PostgresError::Silent));
        };
        let mut all = Vec::with_capacity(calls.len());
        for answer in answers {
            match answer {
                Ok(rows) => all.push(rows),
                Err(problem) if problem.reach() == Reach::Connection => {
                    return Err(self.lose(problem));
                }
                // The transaction is rolled back. The database ignores everything after an error,
                // including the commit.
                Err(problem) => return Err(BatchError::Undone(problem)),
            }
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        if whole {
            all.pop();
            all.remove(0);
        }
        Ok(batch.read(all))
    }

    /// Executes the batch in one transaction with a savepoint per operation.
    async fn apart(&mut self, batch: &Batch) -> Result<Outcome, PostgresError> {
        let shared = Arc::clone(&self.shared);
        let each = batch.each(&shared)?;
        let calls: Vec<&Query<'_>> = each.iter().chain(batch.calls()).collect();
        let session = self.prepared(calls.iter().map(|call| call.sql)).await?;
        let client = &session.client;
        let mut all = Vec::with_capacity(calls.len());
        client.batch_execute("BEGIN").await?;
        for call in &calls {
            client.batch_execute("SAVEPOINT operation").await?;
            let rows = call.send(session).await;
            let (end, lost) = match &rows {
                Ok(_) => ("RELEASE operation", false),
                Err(problem) => ("ROLLBACK TO operation", problem.reach() == Reach::Connection),
            };
            if lost {
                break;
            }
            client.batch_execute(end).await?;
            all.push(rows.map_err(|problem| problem.with(&shared.database.place)));
        }
        client.batch_execute("COMMIT").await?;
        self.commits.fetch_add(1, Ordering::Relaxed);
        Ok(Outcome::each(batch, all))
    }

    /// Returns the connection with these statements prepared. Reopens a lost connection.
    pub(super) async fn prepared(
        &mut self,
        statements: impl Iterator<Item = &'static str>,
    ) -> Result<&Session, PostgresError> {
        if self.session.as_ref().is_none_or(Session::is_closed) {
            self.session = None;
        }
        let session = match self.session.take() {
            Some(session) => session,
            None => self.shared.database.reopen(LONGEST, |_| {}).await?,
        };
        let session = self.session.insert(session);
        for statement in statements {
            session.prepare(statement).await?;
        }
        Ok(session)
    }

    pub(super) fn lose(&mut self, problem: PostgresError) -> BatchError {
        self.session.take().into_iter().for_each(Session::abort);
        BatchError::Unknown(problem)
    }
}

/// Returns a statement without values or rows.
pub(super) fn command<'a>(
    session: &'a Session,
    sql: &'static str,
) -> Sent<'a, Result<Vec<Row>, PostgresError>> {
    Box::pin(async move {
        session.client.batch_execute(sql).await?;
        Ok(Vec::new())
    })
}

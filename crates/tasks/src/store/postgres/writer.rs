//! Those who write, and how many callers share one commit.
//!
//! Each write connection has a queue. It takes what is queued, sends all of it as one
//! transaction without waiting in between, and answers when that is committed. There is no timer:
//! while one commit is on its way, the next operations queue up. New tasks have insert connections: a
//! batch of nothing else takes a faster way, see `copy`. So do steps that are recorded, and tasks that end,
//! as long as their connections do nothing else. Everything else goes by the name of its task.
//!
//! An operation that fails spoils none of the others: most functions of the schema refuse without
//! failing. After any other failure the batch is done again, each operation behind a savepoint.

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

/// How many operations may wait for a connection. A caller beyond that waits for its place in the queue.
const QUEUE: usize = 1_024;

/// Fewer new tasks than that, at once, are made by one connection alone.
const FEW: usize = 128;

/// The queues of the connections. When it is dropped, they write what is queued and end.
#[derive(Debug)]
pub(super) struct Writers {
    write: Vec<mpsc::Sender<Work>>,
    /// For new tasks, which no operation writes to yet: a batch of nothing else is copied.
    insert: Vec<mpsc::Sender<Work>>,
    /// Held by every caller that waits for a new task.
    inserting: Arc<()>,
    /// For what concerns all tasks, so that it never stands between two that concern one.
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
            // It ends when nobody can queue anything any more.
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

    /// Has something written. Once it is queued it is done, even if nobody waits for it any more.
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

    /// Has a task made.
    pub(super) async fn create(
        &self,
        creation: Box<Creation>,
        answered: oneshot::Receiver<Result<CreateOutcome, StoreError>>,
    ) -> Result<CreateOutcome, StoreError> {
        let inserting = Arc::clone(&self.inserting);
        // All share a connection as long as they are few: a batch costs much however many it is of. Beyond
        // that those of one principal do, because they wait for each other.
        let queue = match Arc::strong_count(&inserting) < FEW {
            true => &self.insert[0],
            false => one_of(&self.insert, &creation.task.principal),
        };
        queue.send(Work::Create(creation)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Has something written to a task that can share a statement with others.
    pub(super) fn write_plain(
        &self,
        writing: Writing,
    ) -> impl Future<Output = Result<(), StoreError>> {
        let (answer, answered) = oneshot::channel();
        // What is written in the same way shares a statement that can nothing else, and is faster.
        let (ends, steps) = self.write.split_at(self.write.len() / 2);
        let queues = match writing.kind() {
            WriteKind::Record => steps,
            WriteKind::End if !ends.is_empty() => ends,
            WriteKind::End | WriteKind::Any => &self.write,
        };
        let queue = one_of(queues, writing.task().as_str());
        // There is room nearly always: a future that could wait for it would be large.
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

    /// How often something was committed.
    pub(super) fn commits(&self) -> u64 {
        self.commits.load(Ordering::Relaxed)
    }
}

/// Returns the queue for a name: always the same.
fn one_of<'a>(queues: &'a [mpsc::Sender<Work>], name: &str) -> &'a mpsc::Sender<Work> {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    &queues[(hasher.finish() % queues.len() as u64) as usize]
}

fn gone() -> StoreError {
    StoreError::Unavailable(
        "its writer has ended with the runtime that it was connected in; connect again".to_owned(),
    )
}

pub(super) struct WriteConnection {
    pub(super) shared: Arc<Shared>,
    pub(super) queue: Queue,
    pub(super) session: Option<Session>,
    pub(super) telling: Telling,
    pub(super) commits: Arc<AtomicU64>,
}

/// What is to be done.
pub(super) struct Queue {
    queued: mpsc::Receiver<Work>,
    /// What did not fit into the batch before.
    next: Option<Work>,
}

impl Queue {
    /// What can be done together. `None` when there will be nothing more.
    async fn first(&mut self) -> Option<Batch> {
        let first = match self.next.take() {
            Some(first) => first,
            None => self.queued.recv().await?,
        };
        // Those who were answered together come again together: they are let in, and those whom they
        // wake, so that all share a commit.
        for _ in 0..2 {
            yield_now().await;
        }
        Some(self.batch(first))
    }

    /// What can be done together, if so much waits that it is worth a commit of its own.
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

    /// Everything that waits.
    fn drain(&mut self) -> impl Iterator<Item = Work> {
        let next = self.next.take().into_iter();
        next.chain(std::iter::from_fn(|| self.queued.try_recv().ok()))
    }
}

/// Those who wait for an answer, and those who listen.
pub(super) struct Telling {
    shared: Arc<Shared>,
    /// For other processes.
    changed: mpsc::Sender<Vec<TaskId>>,
}

impl Telling {
    /// Answers everybody, and tells who listens.
    pub(super) fn answer(&self, batch: Batch, outcome: Outcome) {
        let mut changed = Vec::new();
        batch.answer(outcome, &self.shared.database.place, |task, by| {
            self.shared.listeners.tell(&task, by);
            changed.push(task);
        });
        if !changed.is_empty() && self.changed.try_send(changed).is_err() {
            tracing::debug!("other processes are not told of a change; they look by themselves");
        }
    }
}

/// Why a batch was not done.
pub(super) enum BatchError {
    /// Nothing was sent.
    NotSent(PostgresError),
    /// Nobody knows.
    Unknown(PostgresError),
    /// Nothing of it was done, because of this.
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

    /// Answers everybody; what was not done for all of them is tried again, where that is of use.
    pub(super) async fn settle(&mut self, mut batch: Batch, done: Result<Outcome, BatchError>) {
        match done {
            Ok(outcome) => self.telling.answer(batch, outcome),
            Err(BatchError::NotSent(problem)) => {
                // Whoever has come meanwhile has waited for the same connection.
                let error = self.failed(&problem);
                batch.refuse(&error);
                self.queue.drain().for_each(|work| Batch::of(work).refuse(&error));
            }
            Err(BatchError::Unknown(problem)) => {
                let error = self.failed(&problem);
                // A task that was made is found by its name when it is made again. Of the others only
                // their callers know whether it matters if they were done.
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
                        // It may stand in the middle of a transaction.
                        self.lose(problem);
                    }
                }
            }
        }
    }

    fn failed(&self, problem: &PostgresError) -> StoreError {
        let error = problem.with(&self.shared.database.place);
        tracing::warn!(%error, "something could not be written");
        error
    }

    /// Does everything in one transaction, sent at once.
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
        // A single statement is a transaction by itself.
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
                // The transaction is undone: what comes after an error is ignored, also the commit.
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

    /// Does everything in one transaction, where each can fail by itself.
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

    /// The connection, opened again if it is lost, with these statements prepared.
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

/// A statement without values or rows.
pub(super) fn command<'a>(
    session: &'a Session,
    sql: &'static str,
) -> Sent<'a, Result<Vec<Row>, PostgresError>> {
    Box::pin(async move {
        session.client.batch_execute(sql).await?;
        Ok(Vec::new())
    })
}

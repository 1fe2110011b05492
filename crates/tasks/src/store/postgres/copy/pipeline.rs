//! Pipelined batches of new tasks on one connection: the next batch is sent while the previous one
//! commits, if it is large enough. The database and the connection then do not wait for each other.
//!
//! Clients do not know the IDs of these tasks yet, so no operation on a task can overtake its
//! creation. A failed batch is inserted with `create_tasks` instead.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{sync::oneshot, time::timeout};

use super::{
    super::{
        batch::Batch,
        connect::Session,
        error::{PostgresError, Reach},
        state::Shared,
        writer::{BatchError, Queue, Telling, WriteConnection, command},
    },
    transaction::{self, Begun},
};

/// Future that resolves when a transaction is committed.
type Committed<'a> = Pin<Box<dyn Future<Output = Result<(), PostgresError>> + Send + 'a>>;

/// A batch that is being committed.
struct Flying<'a> {
    batch: Batch,
    /// When the tasks of the batch were created.
    at: i64,
    done: Committed<'a>,
    /// Fires when only the commit is outstanding.
    sent: oneshot::Receiver<()>,
}

/// State of the next batch.
enum Next {
    /// No batch is available.
    Nothing,
    Begun(Batch, Begun),
    /// The batch must be inserted with `create_tasks`, possibly because of this error.
    Otherwise(Batch, Option<PostgresError>),
}

/// A batch that was not copied. The error is present if the commit may have succeeded.
type Undone = (Batch, Option<BatchError>);

impl WriteConnection {
    /// Copies a batch, and the following ones while there are any.
    pub(in crate::store::postgres) async fn copy(&mut self, first: Batch) {
        let session = match self.prepared([transaction::COUNT, transaction::COPY].into_iter()).await
        {
            Ok(_) => self.session.take(),
            Err(problem) => return self.settle(first, Err(BatchError::NotSent(problem))).await,
        };
        let Some(session) = session else { return self.work(first).await };
        let (undone, is_lost) = self.fly(&session, first).await;
        // A transaction that has started and was not committed must be rolled back.
        let is_kept = undone.is_empty() || !is_lost && self.roll_back(&session).await;
        match is_kept {
            true => self.session = Some(session),
            false => session.abort(),
        }
        for (batch, trouble) in undone {
            match trouble {
                Some(trouble) => self.settle(batch, Err(trouble)).await,
                None => self.work(batch).await,
            }
        }
    }

    /// Copies batches until one fails. Returns the failed ones, and whether the connection is lost.
    async fn fly(&mut self, session: &Session, mut first: Batch) -> (Vec<Undone>, bool) {
        let shared = Arc::clone(&self.shared);
        let second = first.halve();
        let mut waiting = VecDeque::from_iter([Some(first), second].into_iter().flatten());
        let mut flying: Option<Flying<'_>> = None;
        let mut undone: Vec<Undone> = Vec::new();
        let mut is_lost = false;
        loop {
            let (landing, sent) = match flying.take() {
                Some(Flying { batch, at, done, sent }) => (Some((batch, at, done)), Some(sent)),
                None => (None, None),
            };
            // After a failure, only the batches that already wait are started.
            let queue = undone.is_empty().then_some(&mut self.queue);
            let (landed, next) = tokio::join!(
                biased;
                land(&shared, &self.telling, &self.commits, landing),
                start(&shared, session, &mut waiting, queue, sent),
            );
            if let Some((batch, problem)) = landed {
                let is_unknown = problem.reach() == Reach::Connection;
                is_lost |= is_unknown;
                undone.push((batch, is_unknown.then_some(BatchError::Unknown(problem))));
            }
            match next {
                Next::Nothing => break,
                Next::Begun(batch, begun) => {
                    flying = Some(Flying::new(&shared, session, batch, begun));
                }
                Next::Otherwise(batch, problem) => {
                    is_lost |= problem.is_some_and(|it| it.reach() == Reach::Connection);
                    undone.push((batch, None));
                    undone.extend(waiting.into_iter().map(|batch| (batch, None)));
                    break;
                }
            }
        }
        (undone, is_lost)
    }

    async fn roll_back(&self, session: &Session) -> bool {
        let patience = self.shared.database.patience();
        matches!(timeout(patience, command(session, "ROLLBACK")).await, Ok(Ok(_)))
    }
}

impl<'a> Flying<'a> {
    fn new(shared: &Shared, session: &'a Session, batch: Batch, begun: Begun) -> Self {
        let (sent, is_sent) = oneshot::channel();
        let (at, rows) = (begun.at, transaction::rows(&batch.creations, &begun, shared));
        let done = Box::pin(transaction::finish(session, begun, rows, sent));
        Self { batch, at, done, sent: is_sent }
    }
}

/// Waits for the commit of a batch, and replies to its callers. Returns the batch if the commit
/// failed.
async fn land(
    shared: &Shared,
    telling: &Telling,
    commits: &AtomicU64,
    landing: Option<(Batch, i64, Committed<'_>)>,
) -> Option<(Batch, PostgresError)> {
    let (batch, at, done) = landing?;
    match timeout(shared.database.patience(), done).await.unwrap_or(Err(PostgresError::Silent)) {
        Ok(()) => {
            commits.fetch_add(1, Ordering::Relaxed);
            let outcome = batch.copied(at);
            telling.answer(batch, outcome);
            None
        }
        Err(problem) => Some((batch, problem)),
    }
}

/// Starts the next batch after the previous one is sent, because more tasks may arrive until then.
async fn start(
    shared: &Shared,
    session: &Session,
    waiting: &mut VecDeque<Batch>,
    queue: Option<&mut Queue>,
    sent: Option<oneshot::Receiver<()>>,
) -> Next {
    if let Some(sent) = sent {
        // The sender is dropped if the previous batch fails.
        let _ = sent.await;
    }
    let batch = waiting.pop_front().or_else(|| queue?.more());
    let Some(batch) = batch else { return Next::Nothing };
    if !batch.can_be_copied() {
        return Next::Otherwise(batch, None);
    }
    let begin = transaction::begin(session, &batch.creations, shared);
    match timeout(shared.database.patience(), begin).await.unwrap_or(Err(PostgresError::Silent)) {
        Ok(Some(begun)) => Next::Begun(batch, begun),
        Ok(None) => Next::Otherwise(batch, None),
        Err(problem) => Next::Otherwise(batch, Some(problem)),
    }
}

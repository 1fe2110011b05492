//! Batches of new tasks, one after the other on one connection: while one is committed, the next is
//! sent, if it is large enough. So neither the database nor the connection waits for the other.
//!
//! No client knows the ID of these tasks yet, so no operation on a task can overtake its creation. A batch
//! that fails is inserted the other way.

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

/// The end of a commit.
type Committed<'a> = Pin<Box<dyn Future<Output = Result<(), PostgresError>> + Send + 'a>>;

/// A batch that is being committed.
struct Flying<'a> {
    batch: Batch,
    /// When its tasks were created.
    at: i64,
    done: Committed<'a>,
    /// Fires when only the commit is left.
    sent: oneshot::Receiver<()>,
}

/// What became of the next batch.
enum Next {
    /// There is none.
    Nothing,
    Begun(Batch, Begun),
    /// It must be inserted the other way, perhaps because of this problem.
    Otherwise(Batch, Option<PostgresError>),
}

/// A batch that was not copied, and the problem if it may have been.
type Undone = (Batch, Option<BatchError>);

impl WriteConnection {
    /// Copies a batch, and those that follow it for as long as there are some.
    pub(in crate::store::postgres) async fn copy(&mut self, first: Batch) {
        let session = match self.prepared([transaction::COUNT, transaction::COPY].into_iter()).await
        {
            Ok(_) => self.session.take(),
            Err(problem) => return self.settle(first, Err(BatchError::NotSent(problem))).await,
        };
        let Some(session) = session else { return self.work(first).await };
        let (undone, is_lost) = self.fly(&session, first).await;
        // A transaction that has begun and was not sent is rolled back.
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

    /// Copies batches until one is not done. Returns those that are not, and whether the connection is lost.
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
            // After a failure only the batches that wait already are started.
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

/// Waits for the commit of a batch, and answers its callers. Returns the batch if it failed.
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

/// Starts the next batch once the one before it is sent: until then more tasks may come for it.
async fn start(
    shared: &Shared,
    session: &Session,
    waiting: &mut VecDeque<Batch>,
    queue: Option<&mut Queue>,
    sent: Option<oneshot::Receiver<()>>,
) -> Next {
    if let Some(sent) = sent {
        // The sender is dropped if the batch before fails.
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

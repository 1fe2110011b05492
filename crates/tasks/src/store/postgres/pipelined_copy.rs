//! Batches of new tasks, one after the other on one connection: while one is committed, the next is
//! on its way if it is large enough. The database does not wait for us so, nor we for it.
//!
//! Only tasks that nobody knows of yet are made like this, so nothing that is done to a task can be
//! overtaken. A batch that does not go through is done the other way.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
};

use tokio::{sync::oneshot, time::timeout};

use super::{
    batch::Batch,
    connect::Session,
    copy::{self, Begun},
    error::{Problem, Reach},
    writer::{Lane, Trouble, command},
};

/// A batch that is being committed.
struct Flying<'a> {
    batch: Batch,
    /// When its tasks were made.
    at: i64,
    done: Pin<Box<dyn Future<Output = Result<(), Problem>> + Send + 'a>>,
    /// All that is left is to commit it.
    sent: oneshot::Receiver<()>,
}

/// What became of a batch that was to be the next.
enum Next {
    /// There is none.
    Nothing,
    Begun(Batch, Begun),
    /// It is to be done the other way, because of this or because it must.
    Otherwise(Batch, Option<Problem>),
}

/// A batch that is not done, and whether it may be.
type Undone = (Batch, Option<Trouble>);

impl Lane {
    /// Makes the tasks of a batch, and of those that follow it for as long as there are some.
    pub(super) async fn copy(&mut self, first: Batch) {
        let session = match self.prepared([copy::COUNT, copy::COPY].into_iter()).await {
            Ok(_) => self.session.take(),
            Err(problem) => return self.settle(first, Err(Trouble::NotSent(problem))).await,
        };
        let Some(session) = session else { return self.work(first).await };
        let (undone, is_lost) = self.fly(&session, first).await;
        // What has begun and was not sent is undone.
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

    /// The same, until something is not done; and whether the connection is lost.
    async fn fly(&mut self, session: &Session, mut first: Batch) -> (Vec<Undone>, bool) {
        let shared = Arc::clone(&self.shared);
        let patience = shared.database.patience();
        let mut undone: Vec<Undone> = Vec::new();
        let mut is_lost = false;
        let mut flying: Option<Flying<'_>> = None;
        let second = first.halve();
        let mut waiting = VecDeque::from_iter([Some(first), second].into_iter().flatten());
        loop {
            let (queue, telling, commits) = (&mut self.queue, &self.telling, &self.commits);
            let (landing, sent) = match flying.take() {
                Some(Flying { batch, at, done, sent }) => (Some((batch, at, done)), Some(sent)),
                None => (None, None),
            };
            let land = async {
                let (batch, at, done) = landing?;
                match timeout(patience, done).await.unwrap_or(Err(Problem::Silent)) {
                    Ok(()) => {
                        commits.fetch_add(1, Ordering::Relaxed);
                        let outcome = batch.copied(at);
                        telling.answer(batch, outcome);
                        None
                    }
                    Err(problem) => Some((batch, problem)),
                }
            };
            let may_go_on = undone.is_empty();
            let start = async {
                // Until then more may come for it. It is dropped if the batch before fails.
                if let Some(sent) = sent {
                    let _ = sent.await;
                }
                let batch = match waiting.pop_front() {
                    None if may_go_on => queue.more(),
                    waiting => waiting,
                };
                let Some(batch) = batch else { return Next::Nothing };
                if !batch.can_be_copied() {
                    return Next::Otherwise(batch, None);
                }
                let begin = copy::begin(session, &batch.creations, &shared);
                match timeout(patience, begin).await.unwrap_or(Err(Problem::Silent)) {
                    Ok(Some(begun)) => Next::Begun(batch, begun),
                    Ok(None) => Next::Otherwise(batch, None),
                    Err(problem) => Next::Otherwise(batch, Some(problem)),
                }
            };
            let (landed, next) = tokio::join!(biased; land, start);
            if let Some((batch, problem)) = landed {
                let is_unknown = problem.reach() == Reach::Connection;
                is_lost |= is_unknown;
                undone.push((batch, is_unknown.then_some(Trouble::Unknown(problem))));
            }
            match next {
                Next::Nothing => break,
                Next::Begun(batch, begun) => {
                    let (sent, is_sent) = oneshot::channel();
                    let (at, rows) = (begun.at, copy::rows(&batch.creations, &begun, &shared));
                    let done = Box::pin(copy::finish(session, begun, rows, sent));
                    flying = Some(Flying { batch, at, done, sent: is_sent });
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

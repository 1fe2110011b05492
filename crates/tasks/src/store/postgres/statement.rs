//! Statements with their values, and replies to their callers.

use std::{future::Future, pin::Pin};

use tokio::sync::oneshot;
use tokio_postgres::{Row, types::ToSql};

use super::{connect::Session, error::PostgresError};
use crate::store::{ChangeSource, StoreError, TaskId};

/// A value of a statement.
pub(super) type Value<'a> = Box<dyn ToSql + Send + Sync + 'a>;

/// Creates a list of boxed values.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as $crate::store::postgres::statement::Value<'_>),*] };
}
pub(super) use values;

/// A statement and its values.
pub(super) struct Query<'a> {
    pub(super) sql: &'static str,
    pub(super) values: Vec<Value<'a>>,
}

/// A query with owned values, which can wait in a queue.
pub(super) type Call = Query<'static>;

/// Result of a call, and the tasks that it changed.
pub(super) struct CallResult<T> {
    pub(super) answer: T,
    pub(super) changed: Vec<(TaskId, ChangeSource)>,
}

impl<T> CallResult<T> {
    pub(super) fn new(answer: T) -> Self {
        Self { answer, changed: Vec::new() }
    }

    pub(super) fn changing(answer: T, task: &TaskId, by: ChangeSource) -> Self {
        Self { answer, changed: vec![(task.clone(), by)] }
    }
}

impl<'a> Query<'a> {
    pub(super) fn new(sql: &'static str, values: Vec<Value<'a>>) -> Self {
        Self { sql, values }
    }

    /// Sends the query at the first poll, and waits for its rows.
    pub(super) async fn send(&self, session: &Session) -> Result<Vec<Row>, PostgresError> {
        let statement = session.prepared(self.sql)?;
        let values: Vec<&(dyn ToSql + Sync)> =
            self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        Ok(session.client.query(statement, &values).await?)
    }
}

/// Replies to the caller. Returns the changed tasks with the source of the change.
pub(super) type Reply = Box<
    dyn FnOnce(Result<Vec<Row>, StoreError>, &str) -> Vec<(TaskId, ChangeSource)> + Send + Sync,
>;

/// Creates a reply that decodes the rows, and the receiver of its result.
pub(super) fn reply<T: Send + 'static>(
    read: impl FnOnce(Vec<Row>) -> Result<CallResult<T>, PostgresError> + Send + Sync + 'static,
) -> (Reply, oneshot::Receiver<Result<T, StoreError>>) {
    let (answer, answered) = oneshot::channel();
    let reply = move |rows: Result<Vec<Row>, StoreError>, place: &str| {
        let said = rows.and_then(|rows| read(rows).map_err(|problem| problem.with(place)));
        let (said, changed) = match said {
            Ok(said) => (Ok(said.answer), said.changed),
            Err(error) => (Err(error), Vec::new()),
        };
        // The caller may have been dropped. The call has taken effect in any case.
        let _ = answer.send(said);
        changed
    };
    (Box::new(reply), answered)
}

/// A future that sends a message at its first poll.
pub(super) type Sent<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends all messages in this order without waiting in between, then waits for all responses.
pub(super) async fn pipelined<T>(mut sent: Vec<Sent<'_, T>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = Vec::with_capacity(sent.len());
    std::future::poll_fn(|cx| {
        done.clear();
        done.extend(sent.iter_mut().map(|sent| match sent.as_mut().poll(cx) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        }));
        std::task::Poll::Ready(())
    })
    .await;
    // Responses arrive in the order of the messages, so awaiting them in this order loses no time.
    let mut all = Vec::with_capacity(sent.len());
    for (sent, done) in sent.into_iter().zip(done) {
        all.push(match done {
            Some(done) => done,
            None => sent.await,
        });
    }
    all
}

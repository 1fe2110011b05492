//! One statement that somebody waits for.

use std::{future::Future, pin::Pin};

use tokio::sync::oneshot;
use tokio_postgres::{Row, types::ToSql};

use super::{connect::Session, error::PostgresError};
use crate::store::{ChangeSource, StoreError, TaskId};

/// A value that is sent with a statement.
pub(super) type Value<'a> = Box<dyn ToSql + Send + Sync + 'a>;

/// Writes values in a list, each in its own box.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$(Box::new($value) as $crate::store::postgres::statement::Value<'_>),*] };
}
pub(super) use values;

/// What is asked for: a statement and its values.
pub(super) struct Query<'a> {
    pub(super) sql: &'static str,
    pub(super) values: Vec<Value<'a>>,
}

/// One that can wait in a queue.
pub(super) type Call = Query<'static>;

/// What came of it, and which tasks it has changed.
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

    /// Sends it when it is first polled, and waits for its rows.
    pub(super) async fn send(&self, session: &Session) -> Result<Vec<Row>, PostgresError> {
        let statement = session.prepared(self.sql)?;
        let values: Vec<&(dyn ToSql + Sync)> =
            self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        Ok(session.client.query(statement, &values).await?)
    }
}

/// Tells the caller, and returns the tasks that were changed, and by whom.
pub(super) type Reply = Box<
    dyn FnOnce(Result<Vec<Row>, StoreError>, &str) -> Vec<(TaskId, ChangeSource)> + Send + Sync,
>;

/// A reply that reads the rows, and where its answer comes out.
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
        // Nobody may wait any more; it is done all the same.
        let _ = answer.send(said);
        changed
    };
    (Box::new(reply), answered)
}

/// A future that has a connection send something when it is first polled.
pub(super) type Sent<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends everything at once, in this order, and waits for all of it.
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
    // The answers come in the same order, so nobody waits for one that is there.
    let mut all = Vec::with_capacity(sent.len());
    for (sent, done) in sent.into_iter().zip(done) {
        all.push(match done {
            Some(done) => done,
            None => sent.await,
        });
    }
    all
}

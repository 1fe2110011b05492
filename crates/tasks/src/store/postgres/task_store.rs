//! [`TaskStore`] of the PostgreSQL store.

use std::time::Duration;

use outlive_wire::RawJson;
use tokio::sync::oneshot;

use super::{create, create::Creation, end, queue::Order, read, respond, store::PostgresStore};
use crate::store::{
    CancelOutcome, CreateOutcome, IdempotencyKey, InputSource, ListCursor, NewTask, PageLimit,
    StoreFuture, StoredSegments, TaskId, TaskRecord, TaskStore,
};

impl TaskStore for PostgresStore {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        let (answer, answered) = oneshot::channel();
        let creation = Creation::new(task, answer);
        Box::pin(async move { self.writers.create(creation?, answered).await })
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        let call = create::made(principal, once);
        let read = |rows: Vec<_>| create::read_made(&rows, once);
        Box::pin(self.readers.read(&self.shared, call, read))
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        let read = |rows: Vec<_>| Ok(read::read(&rows)?.pop());
        Box::pin(self.readers.read(&self.shared, read::view(principal, task), read))
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        let call = read::list(principal, origin, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read(&rows)))
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        let call = read::segments(principal, task, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read_segments(&rows)))
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        Box::pin(async move {
            let call = respond::answer(&self.shared, principal, task, from, &answers, max_bytes)?;
            let answered = task.clone();
            let read = move |rows: Vec<_>| respond::read(&rows, &answered);
            self.writers.write(Order::on(task), call, read).await
        })
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        Box::pin(async move {
            let call = end::cancel(&self.shared, principal, task, at_once, retention)?;
            let cancelled = task.clone();
            let read = move |rows: Vec<_>| end::read_cancelled(&rows, &cancelled);
            self.writers.write(Order::on(task), call, read).await
        })
    }
}

//! [`TaskStore`] of the SQLite store.

use std::time::Duration;

use outlive_wire::RawJson;

use super::{
    batch::Batch, create, end, read, respond, statement::in_one_piece, store::SqliteStore,
};
use crate::store::{
    CancelOutcome, CreateOutcome, IdempotencyKey, InputSource, ListCursor, NewTask, PageLimit,
    StoreFuture, StoredSegments, TaskId, TaskRecord, TaskStore,
};

impl TaskStore for SqliteStore {
    fn create(&self, task: NewTask) -> StoreFuture<'_, CreateOutcome> {
        Box::pin(self.writer.write(move |batch| create::create(batch, &task)))
    }

    fn find<'a>(
        &'a self,
        principal: &'a str,
        once: &'a IdempotencyKey,
    ) -> StoreFuture<'a, Option<CreateOutcome>> {
        let (principal, once) = (principal.to_owned(), once.clone());
        let look = move |connection: &_| create::made(connection, &principal, &once);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn get<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
    ) -> StoreFuture<'a, Option<TaskRecord>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let look = move |connection: &_| read::view(connection, &principal, &task);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn list<'a>(
        &'a self,
        principal: &'a str,
        origin: &'a str,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskRecord>> {
        let (principal, origin) = (principal.to_owned(), origin.to_owned());
        let after = after.cloned();
        let look = move |connection: &_| {
            read::list(connection, &principal, &origin, after.as_ref(), limit)
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn read_segments<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        after: u64,
        limit: PageLimit,
    ) -> StoreFuture<'a, Option<StoredSegments>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| {
                read::segments(connection, &principal, &task, after, limit)
            })
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn respond<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        from: InputSource,
        answers: Vec<(String, RawJson)>,
        max_bytes: u64,
    ) -> StoreFuture<'a, Option<usize>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let answer = move |batch: &mut Batch<'_>| {
            respond::answer(batch, &principal, &task, from, &answers, max_bytes)
        };
        Box::pin(self.writer.write(answer))
    }

    fn cancel<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        at_once: bool,
        retention: Duration,
    ) -> StoreFuture<'a, Option<CancelOutcome>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let cancel =
            move |batch: &mut Batch<'_>| end::cancel(batch, &principal, &task, at_once, retention);
        Box::pin(self.writer.write(cancel))
    }
}

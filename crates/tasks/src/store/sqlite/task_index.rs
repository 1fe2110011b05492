//! [`TaskIndex`] of the SQLite store.

use super::{search, statement::in_one_piece, store::SqliteStore, timeline};
use crate::store::{
    IndexedTask, JournalCursor, JournalItem, ListCursor, StoreFuture, TaskCount, TaskId, TaskIndex,
    TaskPage, TaskQuery, TimelineEntry,
};

impl TaskIndex for SqliteStore {
    fn page<'a>(
        &'a self,
        query: &'a TaskQuery,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, TaskPage> {
        let (query, after) = (query.clone(), after.cloned());
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| {
                search::page(connection, &query, after.as_ref(), limit)
            })
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn count<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> StoreFuture<'a, TaskCount> {
        let query = query.clone();
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| search::count(connection, &query, limit))
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn task<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<IndexedTask>> {
        let task = task.clone();
        let look = move |connection: &_| search::task(connection, &task);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn journal<'a>(
        &'a self,
        task: &'a TaskId,
        after: Option<&'a JournalCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<JournalItem>> {
        let (task, after) = (task.clone(), after.cloned());
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| {
                timeline::entries(connection, &task, after.as_ref(), limit)
            })
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn timeline<'a>(
        &'a self,
        task: &'a TaskId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TimelineEntry>> {
        let task = task.clone();
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| timeline::times(connection, &task, limit))
        };
        Box::pin(self.readers.read(&self.file, look))
    }
}

//! [`TaskIndex`] of the PostgreSQL store.

use super::{search, store::PostgresStore, timeline};
use crate::store::{
    IndexedTask, JournalCursor, JournalItem, ListCursor, StoreFuture, TaskCount, TaskId, TaskIndex,
    TaskPage, TaskQuery, TimelineEntry,
};

impl TaskIndex for PostgresStore {
    fn page<'a>(
        &'a self,
        query: &'a TaskQuery,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, TaskPage> {
        let call = search::page(query, after, limit);
        let read = move |rows: Vec<_>| search::read_page(&rows, limit);
        Box::pin(self.readers.read(&self.shared, call, read))
    }

    fn count<'a>(&'a self, query: &'a TaskQuery, limit: usize) -> StoreFuture<'a, TaskCount> {
        let call = search::counting(query, limit);
        let read = move |rows: Vec<_>| search::read_count(&rows, limit);
        Box::pin(self.readers.read(&self.shared, call, read))
    }

    fn task<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<IndexedTask>> {
        let call = search::one(task);
        Box::pin(self.readers.read(&self.shared, call, |rows| search::read_one(&rows)))
    }

    fn journal<'a>(
        &'a self,
        task: &'a TaskId,
        after: Option<&'a JournalCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<JournalItem>> {
        let call = timeline::journal(task, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| timeline::read_journal(&rows)))
    }

    fn timeline<'a>(
        &'a self,
        task: &'a TaskId,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TimelineEntry>> {
        let call = timeline::timeline(task, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| timeline::read_timeline(&rows)))
    }
}

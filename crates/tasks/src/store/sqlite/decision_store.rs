//! [`DecisionStore`] of the SQLite store.

use super::{batch::Batch, decide, inbox, statement::in_one_piece, store::SqliteStore};
use crate::store::{
    Decision, DecisionOutcome, DecisionStore, InboxCursor, InboxItem, InboxReader,
    InputRequestDetail, SettledResponse, StoreFuture, TaskId, UnixMillis,
};

impl DecisionStore for SqliteStore {
    fn open_for<'a>(
        &'a self,
        reader: &'a InboxReader,
        after: Option<&'a InboxCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<InboxItem>> {
        let (reader, after) = (reader.clone(), after.cloned());
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| {
                inbox::open_for(connection, &reader, after.as_ref(), limit)
            })
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn count_open<'a>(&'a self, reader: &'a InboxReader, limit: usize) -> StoreFuture<'a, usize> {
        let reader = reader.clone();
        let look = move |connection: &_| inbox::count_open(connection, &reader, limit);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn settled_since<'a>(
        &'a self,
        denial: &'a str,
        since: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SettledResponse>> {
        let denial = denial.to_owned();
        let look = move |connection: &_| inbox::settled_since(connection, &denial, since, limit);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn voted_by<'a>(&'a self, person: &'a str, limit: usize) -> StoreFuture<'a, Vec<InboxItem>> {
        let person = person.to_owned();
        let look = move |connection: &_| inbox::voted_by(connection, &person, limit);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn input_request<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputRequestDetail>> {
        let (task, name) = (task.clone(), name.to_owned());
        let look = move |connection: &_| inbox::detail(connection, &task, &name);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn decide<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
        decision: &'a Decision,
    ) -> StoreFuture<'a, DecisionOutcome> {
        let (task, name, decision) = (task.clone(), name.to_owned(), decision.clone());
        let decide = move |batch: &mut Batch<'_>| decide::decide(batch, &task, &name, &decision);
        Box::pin(self.writer.write(decide))
    }
}

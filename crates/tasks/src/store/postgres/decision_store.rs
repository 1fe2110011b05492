//! [`DecisionStore`] of the PostgreSQL store.

use super::{decision, inbox, queue::Order, store::PostgresStore};
use crate::store::{
    Decision, DecisionOutcome, DecisionStore, InboxCursor, InboxItem, InboxReader,
    InputRequestDetail, SettledResponse, StoreFuture, TaskId, UnixMillis,
};

impl DecisionStore for PostgresStore {
    fn open_for<'a>(
        &'a self,
        reader: &'a InboxReader,
        after: Option<&'a InboxCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<InboxItem>> {
        let call = inbox::open_for(reader, after, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| inbox::read_items(&rows)))
    }

    fn count_open<'a>(&'a self, reader: &'a InboxReader, limit: usize) -> StoreFuture<'a, usize> {
        let call = inbox::count_open(reader, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| inbox::read_count(&rows)))
    }

    fn settled_since<'a>(
        &'a self,
        denial: &'a str,
        since: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SettledResponse>> {
        let call = inbox::settled_since(denial, since, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| inbox::read_settled(&rows)))
    }

    fn voted_by<'a>(&'a self, person: &'a str, limit: usize) -> StoreFuture<'a, Vec<InboxItem>> {
        let call = inbox::voted_by(person, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| inbox::read_items(&rows)))
    }

    fn input_request<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputRequestDetail>> {
        let call = inbox::detail(&self.shared, task, name);
        let read = |rows: Vec<_>| Ok(inbox::read_detail(&rows)?.map(|observed| observed.detail));
        Box::pin(self.readers.read(&self.shared, call, read))
    }

    fn decide<'a>(
        &'a self,
        task: &'a TaskId,
        name: &'a str,
        decision: &'a Decision,
    ) -> StoreFuture<'a, DecisionOutcome> {
        Box::pin(async move {
            // The transaction records the vote only if the request is as observed. Each repetition
            // follows a change of the request, and a request changes a few times only.
            loop {
                let call = inbox::detail(&self.shared, task, name);
                let read = |rows: Vec<_>| inbox::read_detail(&rows);
                let Some(observed) = self.readers.read(&self.shared, call, read).await? else {
                    return Ok(DecisionOutcome::Unknown);
                };
                let outcome = decision::outcome(&observed, decision);
                if !outcome.is_recorded() {
                    return Ok(outcome);
                }
                let settles = outcome == DecisionOutcome::Settled;
                let call = decision::record(&self.shared, &observed, decision, settles)?;
                let voted = task.clone();
                let read = move |rows: Vec<_>| decision::read(&rows, &voted, outcome);
                // Alone, because the audit log is locked after the task.
                if let Some(outcome) = self.writers.write(Order::Alone, call, read).await? {
                    return Ok(outcome);
                }
            }
        })
    }
}

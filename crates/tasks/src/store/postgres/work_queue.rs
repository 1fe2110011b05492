//! [`WorkQueue`] of the PostgreSQL store.

use std::future::ready;
use std::time::Duration;

use super::{
    claim,
    commit::{self, Writing},
    commit_alone, end,
    queue::Order,
    respond,
    statement::CallResult,
    store::PostgresStore,
};
use crate::store::{
    ChangeListener, ChangeSource, Changes, Claim, ClaimedTask, CleanupState, Inbox, Lease,
    StoreError, StoreFuture, StoreKind, SweepReport, Transition, WorkQueue, WorkerId,
    commit_span::{commit_span, in_span},
};

impl WorkQueue for PostgresStore {
    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        let call = claim::claim(&self.shared, worker, lease, claim);
        let by = worker.clone();
        Box::pin(async move {
            let read = move |rows: Vec<_>| claim::read_claimed(&rows, &by);
            let brought = self.writers.write(Order::Alone, call, read).await?;
            for (lease, problem) in &brought.unreadable {
                let (task, why) = (&lease.task, problem.with(&self.shared.database.place));
                tracing::error!(
                    task_id = task.prefix(),
                    error = %why,
                    "task cannot be read and is skipped"
                );
                let call = claim::postpone(lease);
                self.writers.write(Order::on(task), call, |_| Ok(CallResult::new(()))).await?;
            }
            Ok(brought.claimed)
        })
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
        let call = claim::renew(&self.shared, worker, lease);
        let by = worker.clone();
        let read = move |rows: Vec<_>| claim::read_renewed(&rows, &by);
        Box::pin(self.writers.write(Order::Alone, call, read))
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        let call = claim::release(&self.shared, worker);
        Box::pin(self.writers.write(Order::Alone, call, |rows| claim::read_released(&rows)))
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        let commit: StoreFuture<'a, ()> = match Writing::of(lease, changes, then) {
            // Most commits are combinable, and their future does not need to carry all arguments.
            Ok(Some(writing)) => {
                let written = self.writers.write_plain(writing);
                Box::pin(async move {
                    match written.await {
                        // The combined check is an upper bound. A commit alone measures the bytes
                        // exactly.
                        Err(StoreError::BytesExceeded) => {
                            self.write_alone(lease, changes, then).await
                        }
                        written => written,
                    }
                })
            }
            Ok(None) => self.write_alone(lease, changes, then),
            Err(error) => Box::pin(ready(Err(error))),
        };
        in_span(commit_span(StoreKind::Postgres, changes, then), commit)
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        let read = |rows: Vec<_>| respond::read_heard(&rows);
        Box::pin(self.readers.read(&self.shared, respond::heard(lease), read))
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        let call = end::clean_up(&self.shared, lease, now);
        let task = lease.task.clone();
        let read = move |rows: Vec<_>| end::read_clean_up(&rows, &task, now);
        Box::pin(self.writers.write(Order::on(&lease.task), call, read))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let call = claim::next_due(&self.shared, except);
        Box::pin(self.readers.read(&self.shared, call, |rows| claim::read_due(&rows)))
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        Box::pin(async move {
            let call = end::sweep(&self.shared, limit, retention)?;
            self.writers.write(Order::Alone, call, |rows| end::read_swept(&rows)).await
        })
    }

    fn subscribe(&self, listener: ChangeListener) {
        self.shared.listeners.add(listener);
    }
}

impl PostgresStore {
    /// Commits the changes of a worker in a separate statement.
    fn write_alone<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let (task, call) =
                (lease.task.clone(), commit_alone::alone(lease, changes, then, &self.shared)?);
            let read = move |rows: Vec<_>| {
                commit::read(&rows)?;
                Ok(CallResult::changing((), &task, ChangeSource::Worker))
            };
            self.writers.write(Order::on(&lease.task), call, read).await
        })
    }
}

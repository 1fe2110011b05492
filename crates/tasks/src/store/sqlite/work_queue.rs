//! [`WorkQueue`] of the SQLite store.

use std::sync::Arc;
use std::time::Duration;

use super::{batch::Batch, claim, commit, end, statement::in_one_piece, store::SqliteStore, sweep};
use crate::store::{
    ChangeListener, Changes, Claim, ClaimedTask, CleanupState, Inbox, Lease, StoreFuture,
    StoreKind, SweepReport, Transition, WorkQueue, WorkerId,
    commit_span::{commit_span, in_span},
};

impl WorkQueue for SqliteStore {
    fn claim<'a>(
        &'a self,
        worker: &'a WorkerId,
        lease: Duration,
        claim: &'a Claim,
    ) -> StoreFuture<'a, Vec<ClaimedTask>> {
        let (worker, file) = (worker.clone(), Arc::clone(&self.file));
        let claim = Arc::new(claim.clone());
        Box::pin(async move {
            // Idle workers claim repeatedly. A read first avoids the write lock if no task is due.
            let wish = Arc::clone(&claim);
            let look = move |connection: &_| claim::due(connection, &file, &wish);
            let Some(dead) = self.readers.read(&self.file, look).await? else {
                return Ok(Vec::new());
            };
            let claim =
                move |batch: &mut Batch<'_>| claim::claim(batch, &worker, lease, &claim, &dead);
            self.writer.write(claim).await
        })
    }

    fn renew<'a>(&'a self, worker: &'a WorkerId, lease: Duration) -> StoreFuture<'a, Vec<Lease>> {
        let worker = worker.clone();
        Box::pin(self.writer.write(move |batch| claim::renew(batch, &worker, lease)))
    }

    fn release<'a>(&'a self, worker: &'a WorkerId) -> StoreFuture<'a, ()> {
        let worker = worker.clone();
        Box::pin(self.writer.write(move |batch| claim::release(batch, &worker)))
    }

    fn commit<'a>(
        &'a self,
        lease: &'a Lease,
        changes: &'a Changes,
        then: &'a Transition,
    ) -> StoreFuture<'a, ()> {
        let span = commit_span(StoreKind::Sqlite, changes, then);
        let (lease, changes, then) = (lease.clone(), changes.clone(), then.clone());
        let write = self.writer.write(move |batch| commit::write(batch, &lease, &changes, &then));
        in_span(span, Box::pin(write))
    }

    fn inbox<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, Inbox> {
        let lease = lease.clone();
        let look = move |connection: &_| {
            in_one_piece(connection, |connection| claim::heard(connection, &lease))
        };
        Box::pin(self.readers.read(&self.file, look))
    }

    fn finish_cleanup<'a>(&'a self, lease: &'a Lease, now: CleanupState) -> StoreFuture<'a, ()> {
        let lease = lease.clone();
        Box::pin(self.writer.write(move |batch| end::clean_up(batch, &lease, now)))
    }

    fn next_due<'a>(&'a self, except: &'a [String]) -> StoreFuture<'a, Option<Duration>> {
        let (file, except) = (Arc::clone(&self.file), except.to_vec());
        let look = move |connection: &_| claim::next_due(connection, file.clock.now(), &except);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn sweep(&self, limit: usize, retention: Duration) -> StoreFuture<'_, SweepReport> {
        Box::pin(self.writer.write(move |batch| sweep::sweep(batch, limit, retention)))
    }

    fn subscribe(&self, listener: ChangeListener) {
        self.watcher.listen(&self.file, listener);
    }
}

//! [`BridgeStore`] of the SQLite store.

use std::{sync::Arc, time::Duration};

use super::{
    batch::Batch,
    bridge::{self, EqualCall, Joinable},
    store::SqliteStore,
};
use crate::store::{
    Attended, BridgeStore, Departure, Joined, OpenCall, StoreFuture, TaskId, WorkerId,
};

impl BridgeStore for SqliteStore {
    fn join<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        fingerprint: &'a str,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Joined> {
        let [principal, scope, fingerprint] = [principal, scope, fingerprint].map(str::to_owned);
        let call = Arc::new(EqualCall { principal, scope, fingerprint });
        let (worker, file) = (worker.clone(), Arc::clone(&self.file));
        Box::pin(async move {
            // Nearly all calls find no run. A read first avoids the write lock for them.
            let sought = Arc::clone(&call);
            let look = move |connection: &_| bridge::joinable(connection, &file, &sought);
            match self.readers.read(&self.file, look).await? {
                Joinable::Now(_) => {}
                Joinable::After(wait) => return Ok(Joined::Returning(wait)),
                Joinable::Never => return Ok(Joined::Nothing),
            }
            self.writer.write(move |batch| bridge::join(batch, &call, &worker)).await
        })
    }

    fn attend<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Option<Attended>> {
        let (principal, task, worker) = (principal.to_owned(), task.clone(), worker.clone());
        let attend = move |batch: &mut Batch<'_>| bridge::attend(batch, &principal, &task, &worker);
        Box::pin(self.writer.write(attend))
    }

    fn leave<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
        how: Departure,
    ) -> StoreFuture<'a, ()> {
        let (principal, task, worker) = (principal.to_owned(), task.clone(), worker.clone());
        let leave =
            move |batch: &mut Batch<'_>| bridge::leave(batch, &principal, &task, &worker, how);
        Box::pin(self.writer.write(leave))
    }

    fn deliver<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        retention: Option<Duration>,
    ) -> StoreFuture<'a, ()> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let deliver =
            move |batch: &mut Batch<'_>| bridge::deliver(batch, &principal, &task, retention);
        Box::pin(self.writer.write(deliver))
    }

    fn open_calls<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<OpenCall>> {
        let (principal, scope) = (principal.to_owned(), scope.to_owned());
        let look = move |connection: &_| bridge::open_calls(connection, &principal, &scope, limit);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn evict<'a>(&'a self, principal: &'a str, bytes: u64) -> StoreFuture<'a, u64> {
        let principal = principal.to_owned();
        Box::pin(self.writer.write(move |batch| bridge::evict(batch, &principal, bytes)))
    }
}

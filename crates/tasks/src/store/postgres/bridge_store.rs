//! [`BridgeStore`] of the PostgreSQL store.

use std::time::Duration;

use super::{
    bridge::{self, EqualCall},
    queue::Order,
    statement::CallResult,
    store::PostgresStore,
};
use crate::store::{Attended, BridgeStore, Departure, OpenCall, StoreFuture, TaskId, WorkerId};

impl BridgeStore for PostgresStore {
    fn join<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        fingerprint: &'a str,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Option<Attended>> {
        let call = EqualCall { principal, scope, fingerprint };
        Box::pin(async move {
            // Nearly all calls find no run, and a read does not wait for writes.
            let look = bridge::joinable(&self.shared, &call);
            let read = |rows: Vec<_>| bridge::read_joinable(&rows);
            if !self.readers.read(&self.shared, look, read).await? {
                return Ok(None);
            }
            let join = bridge::join(&self.shared, &call, worker);
            let read = |rows: Vec<_>| bridge::read_joined(&rows);
            self.writers.write(Order::Alone, join, read).await
        })
    }

    fn attend<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Option<Attended>> {
        let call = bridge::attend(&self.shared, principal, task, worker);
        let attended = task.clone();
        let read = move |rows: Vec<_>| bridge::read_attended(&rows, &attended);
        Box::pin(self.writers.write(Order::on(task), call, read))
    }

    fn leave<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        worker: &'a WorkerId,
        how: Departure,
    ) -> StoreFuture<'a, ()> {
        let call = bridge::leave(&self.shared, principal, task, worker, how);
        Box::pin(self.writers.write(Order::on(task), call, |_| Ok(CallResult::new(()))))
    }

    fn deliver<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        retention: Option<Duration>,
    ) -> StoreFuture<'a, ()> {
        let call = bridge::deliver(&self.shared, principal, task, retention);
        Box::pin(self.writers.write(Order::on(task), call, |_| Ok(CallResult::new(()))))
    }

    fn open_calls<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<OpenCall>> {
        let call = bridge::open_calls(principal, scope, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| bridge::read_open(&rows)))
    }

    fn evict<'a>(&'a self, principal: &'a str, bytes: u64) -> StoreFuture<'a, u64> {
        let call = bridge::evict(principal, bytes);
        Box::pin(self.writers.write(Order::Alone, call, |rows| bridge::read_evicted(&rows)))
    }
}

//! [`BridgeStore`] of the PostgreSQL store.

use std::time::Duration;

use super::{
    bridge::{self, EqualCall, Joinable},
    queue::Order,
    statement::CallResult,
    store::PostgresStore,
};
use crate::store::{
    Attended, BridgeStore, Departure, Joined, OpenCall, StoreFuture, TaskId, WorkerId,
};

impl BridgeStore for PostgresStore {
    fn join<'a>(
        &'a self,
        principal: &'a str,
        scope: &'a str,
        fingerprint: &'a str,
        worker: &'a WorkerId,
    ) -> StoreFuture<'a, Joined> {
        let call = EqualCall { principal, scope, fingerprint };
        Box::pin(async move {
            loop {
                // Nearly all calls find no run, and a read does not wait for writes.
                let look = bridge::joinable(&self.shared, &call);
                let read = |rows: Vec<_>| bridge::read_joinable(&rows);
                match self.readers.read(&self.shared, look, read).await? {
                    Joinable::Now => {}
                    Joinable::After(wait) => return Ok(Joined::Returning(wait)),
                    Joinable::Never => return Ok(Joined::Nothing),
                }
                let join = bridge::join(&self.shared, &call, worker);
                let read = |rows: Vec<_>| bridge::read_joined(&rows);
                if let Some(run) = self.writers.write(Order::Alone, join, read).await? {
                    return Ok(Joined::Run(run));
                }
                // Another call has joined the run first.
            }
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

//! [`ResultStore`] of the PostgreSQL store.

use std::sync::Arc;

use super::{queue::Order, result_part, statement::CallResult, store::PostgresStore};
use crate::store::{ResultStore, StoreFuture, TaskId};

impl ResultStore for PostgresStore {
    fn read_part<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        block: u32,
        part: u32,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>> {
        let call = result_part::read(principal, task, block, part);
        Box::pin(self.readers.read(&self.shared, call, |rows| result_part::read_body(&rows)))
    }

    fn delete_parts<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> StoreFuture<'a, u64> {
        let call = result_part::delete(principal, task);
        let read = |rows: Vec<_>| Ok(CallResult::new(result_part::read_freed(&rows)?));
        Box::pin(self.writers.write(Order::on(task), call, read))
    }
}

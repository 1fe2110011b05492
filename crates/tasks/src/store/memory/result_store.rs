//! [`ResultStore`] of the memory store.

use std::sync::Arc;

use super::state::{MemoryStore, done};
use crate::store::{ResultStore, StoreFuture, TaskId};

impl ResultStore for MemoryStore {
    fn read_part<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        block: u32,
        part: u32,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>> {
        let tasks = self.lock();
        let row = tasks.get(task).filter(|row| row.principal == principal);
        done(Ok(row.and_then(|row| row.result_parts.get(&(block, part)).cloned())))
    }

    fn delete_parts<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> StoreFuture<'a, u64> {
        let mut tasks = self.lock();
        if tasks.get(task).is_none_or(|row| row.principal != principal) {
            return done(Ok(0));
        }
        let freed = tasks.change(task, |row| {
            let parts = std::mem::take(&mut row.result_parts);
            let freed: usize = parts.values().map(|part| part.len()).sum();
            row.bytes -= freed;
            freed as u64
        });
        done(Ok(freed.unwrap_or_default()))
    }
}

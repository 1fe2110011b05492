//! [`ResultStore`] of the SQLite store.

use std::sync::Arc;

use super::{result_part, store::SqliteStore};
use crate::store::{ResultStore, StoreFuture, TaskId};

impl ResultStore for SqliteStore {
    fn read_part<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        block: u32,
        part: u32,
    ) -> StoreFuture<'a, Option<Arc<[u8]>>> {
        let (principal, task) = (principal.to_owned(), task.clone());
        let look =
            move |connection: &_| result_part::read(connection, &principal, &task, (block, part));
        Box::pin(self.readers.read(&self.file, look))
    }

    fn delete_parts<'a>(&'a self, principal: &'a str, task: &'a TaskId) -> StoreFuture<'a, u64> {
        let (principal, task) = (principal.to_owned(), task.clone());
        Box::pin(self.writer.write(move |batch| result_part::delete(batch, &principal, &task)))
    }
}

//! [`InputStore`] of the PostgreSQL store.

use super::{read, store::PostgresStore};
use crate::store::{InputDetail, InputStore, StoreFuture, TaskId};

impl InputStore for PostgresStore {
    fn open_input<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputDetail>> {
        let call = read::input(principal, task, name);
        Box::pin(self.readers.read(&self.shared, call, |rows| read::read_input(&rows, name)))
    }
}

//! [`InputStore`] of the memory store.

use super::{
    input_row::InputRow,
    state::{MemoryStore, done},
};
use crate::store::{InputDetail, InputStore, StoreFuture, TaskId};

impl InputStore for MemoryStore {
    fn open_input<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputDetail>> {
        let tasks = self.lock();
        let row = tasks.get(task).filter(|row| row.principal == principal);
        done(Ok(row.and_then(|row| {
            let input = row.asked(name).and_then(InputRow::open)?;
            Some(InputDetail { tool: row.kind.clone(), call: row.request.clone(), input })
        })))
    }
}

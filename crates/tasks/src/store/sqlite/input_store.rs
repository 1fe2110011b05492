//! [`InputStore`] of the SQLite store.

use rusqlite::Connection;

use super::{column::raw, error::SqliteError, read, statement::one, store::SqliteStore};
use crate::store::{InputDetail, InputStore, StoreFuture, TaskId};

pub(super) const OPEN_INPUT: &str =
    "SELECT task.tool, task_request.body, input_request.body, input_request.audience,
         input_request.due_at
     FROM task JOIN task_request ON task_request.task = task.number
         JOIN input_request ON input_request.task = task.number
     WHERE task.id = ?1 AND task.principal = ?2 AND input_request.wire_key = ?3
         AND input_request.state = 0 AND input_request.is_external = 0
         AND input_request.audience < 2";

impl InputStore for SqliteStore {
    fn open_input<'a>(
        &'a self,
        principal: &'a str,
        task: &'a TaskId,
        name: &'a str,
    ) -> StoreFuture<'a, Option<InputDetail>> {
        let (principal, task, name) = (principal.to_owned(), task.clone(), name.to_owned());
        let look = move |connection: &_| open_input(connection, &principal, &task, name);
        Box::pin(self.readers.read(&self.file, look))
    }
}

fn open_input(
    connection: &Connection,
    principal: &str,
    task: &TaskId,
    name: String,
) -> Result<Option<InputDetail>, SqliteError> {
    let found = one(connection, OPEN_INPUT, (task.as_str(), principal, &name), |row| {
        let texts: (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok((texts, row.get::<_, i16>(3)?, row.get::<_, Option<i64>>(4)?))
    })?;
    let Some(((tool, call, body), to, due)) = found else { return Ok(None) };
    let input = read::open_input(name, &body, to, due)?;
    Ok(Some(InputDetail { tool, call: raw("request", call)?, input }))
}

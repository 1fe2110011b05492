//! Reads of tasks.

use rusqlite::{Connection, Row};

use super::{
    clock::{from_column, to_column},
    column::{audience, count, from_json, phase, raw},
    error::SqliteError,
    statement::{all, one, until},
};
use crate::store::{ListCursor, OpenInput, PageLimit, StoredSegments, TaskId, TaskRecord};

// One statement reads one consistent state. For a task without open input requests, it reads only
// one row.
macro_rules! seen {
    ($($which:literal),*) => {
        concat!(
            "SELECT id, tool, origin, phase, outcome, created_at, updated_at, effective_ttl, status_message,
             cancel_requested_at, progress, CASE WHEN open > 0 THEN (
                 SELECT json_group_array(json_array(wire_key, body, audience, due_at) ORDER BY ordinal) FROM input_request
                 WHERE input_request.task = task.number AND state = 0 AND is_external = 0 AND audience < 2
             ) END, acknowledged_at IS NOT NULL",
            $($which),*
        )
    };
}

pub(super) use seen;

pub(super) const VIEW: &str = seen!(" FROM task WHERE id = ?1 AND principal = ?2");
pub(super) const LIST: &str = seen!(
    " FROM task WHERE principal = ?1 AND origin = ?2 AND listed = 1
     AND acknowledged_at IS NOT NULL AND (created_at, id) > (?3, ?4) ORDER BY created_at, id LIMIT ?5"
);

pub(super) const LAST_EMITTED: &str = "SELECT number, phase = 3, coalesce((
         SELECT max(number) FROM segment WHERE task = task.number), 0),
         open > 0 AND EXISTS (SELECT 1 FROM input_request
             WHERE input_request.task = task.number AND state = 0 AND audience < 2)
     FROM task WHERE id = ?1 AND principal = ?2";
pub(super) const EMITTED: &str =
    "SELECT body FROM segment WHERE task = ?1 AND number > ?2 ORDER BY number LIMIT ?3";

pub(super) fn view(
    connection: &Connection,
    principal: &str,
    task: &TaskId,
) -> Result<Option<TaskRecord>, SqliteError> {
    let seen = one(connection, VIEW, (task.as_str(), principal), Seen::read)?;
    seen.map(Seen::view).transpose()
}

/// Returns the segments of a task after a sequence number. Must run inside a transaction, so that
/// both statements read the same state.
pub(super) fn segments(
    connection: &Connection,
    principal: &str,
    task: &TaskId,
    after: u64,
    limit: PageLimit,
) -> Result<Option<StoredSegments>, SqliteError> {
    let found = one(connection, LAST_EMITTED, (task.as_str(), principal), |row| {
        Ok((row.get::<_, i64>(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
    })?;
    let Some((number, ended, last, asks)) = found else { return Ok(None) };
    let mut blocks = Vec::new();
    if to_column(after) < last {
        let mut bytes = 0;
        let place = (number, to_column(after), count(limit.segments));
        until(connection, EMITTED, place, |row| {
            let body: String = row.get(0)?;
            bytes += body.len();
            blocks.push(body);
            Ok(bytes < limit.bytes)
        })?;
    }
    let blocks = blocks.into_iter().map(|body| raw("segments", body)).collect::<Result<_, _>>()?;
    Ok(Some(StoredSegments { blocks, last: from_column(last), ended, input_required: asks }))
}

pub(super) fn list(
    connection: &Connection,
    principal: &str,
    origin: &str,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<Vec<TaskRecord>, SqliteError> {
    // No task was created before 1970, and no ID is empty.
    let (created, id) =
        after.map_or((0, ""), |after| (to_column(after.created), after.id.as_str()));
    let place = (principal, origin, created, id, count(limit));
    let seen = all(connection, LIST, place, Seen::read)?;
    seen.into_iter().map(Seen::view).collect()
}

/// Row of a task with the columns of a [`TaskRecord`].
pub(super) struct Seen {
    id: String,
    kind: String,
    origin: String,
    phase: i64,
    outcome: Option<String>,
    created: i64,
    updated: i64,
    ttl: Option<i64>,
    message: Option<String>,
    cancel_requested: Option<i64>,
    progress: Option<String>,
    /// Open input requests by wire key, as JSON; `None` without open requests.
    input_requests: Option<String>,
    acknowledged: bool,
}

impl Seen {
    pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get(0)?,
            kind: row.get(1)?,
            origin: row.get(2)?,
            phase: row.get(3)?,
            outcome: row.get(4)?,
            created: row.get(5)?,
            updated: row.get(6)?,
            ttl: row.get(7)?,
            message: row.get(8)?,
            cancel_requested: row.get(9)?,
            progress: row.get(10)?,
            input_requests: row.get(11)?,
            acknowledged: row.get(12)?,
        })
    }

    pub(super) fn view(self) -> Result<TaskRecord, SqliteError> {
        let outcome = self.outcome.map(|outcome| from_json("outcome", &outcome));
        let progress = self.progress.map(|progress| from_json("progress", &progress));
        let requests = self.input_requests.as_deref().map(requests);
        Ok(TaskRecord {
            input_requests: requests.transpose()?.unwrap_or_default(),
            id: TaskId::new(self.id),
            tool: self.kind,
            origin: self.origin,
            phase: phase(self.phase)?,
            outcome: outcome.transpose()?,
            created_at: from_column(self.created),
            updated_at: from_column(self.updated),
            ttl: self.ttl.map(from_column),
            status_message: self.message,
            progress: progress.transpose()?,
            cancel_requested: self.cancel_requested.map(from_column),
            acknowledged: self.acknowledged,
        })
    }
}

fn requests(column: &str) -> Result<Vec<OpenInput>, SqliteError> {
    let rows: Vec<(String, String, i16, Option<i64>)> = from_json("input_request", column)?;
    rows.into_iter().map(|(name, body, to, due)| open_input(name, &body, to, due)).collect()
}

/// Reads an open input request to the client from its columns.
pub(super) fn open_input(
    name: String,
    body: &str,
    to: i16,
    due: Option<i64>,
) -> Result<OpenInput, SqliteError> {
    Ok(OpenInput {
        name,
        request: from_json("input_request", body)?,
        audience: audience(to, None)?,
        due: due.map(from_column),
    })
}

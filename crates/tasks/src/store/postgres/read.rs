//! Reads of tasks, each in one statement and so from one consistent state.

use std::time::Duration;

use tokio_postgres::Row;

use super::{
    clock::{from_column, to_column},
    column::{count, from_json, from_text, get, name, optional_name, owned, phase, progress, raw},
    error::PostgresError,
    input_request::audience,
    state::Shared,
    statement::{Call, values},
};
use crate::store::{
    InputDetail, ListCursor, OpenInput, PageLimit, StoreStats, StoredSegments, TaskId, TaskRecord,
};

/// Returns a statement that reads records of tasks, with more columns. Requests for named people or
/// a scope are not part of a record.
macro_rules! seen {
    ($more:expr, $which:expr) => {
        concat!(
            "SELECT id, tool, origin, phase, outcome, created_at, updated_at, effective_ttl, status_message,
             cancel_requested_at, q.names, q.bodies, progress, q.audiences, q.dues,
             acknowledged_at IS NOT NULL",
            $more,
            " FROM task t CROSS JOIN LATERAL (
                 SELECT array_agg(wire_key ORDER BY ordinal) AS names,
                     array_agg(body ORDER BY ordinal) AS bodies,
                     array_agg(audience ORDER BY ordinal) AS audiences,
                     array_agg(due_at ORDER BY ordinal) AS dues
                 FROM input_request
                 WHERE task = t.number AND state = 0 AND body IS NOT NULL AND audience < 2) AS q ",
            $which
        )
    };
}

pub(super) use seen;

pub(super) const VIEW: &str = seen!("", "WHERE id = $1 AND principal = $2");
pub(super) const LIST: &str = seen!(
    "",
    "WHERE principal = $1 AND origin = $2 AND listed AND acknowledged_at IS NOT NULL
     AND (created_at, id) > ($3, $4)
     ORDER BY created_at, id LIMIT $5"
);
// The segment that exceeds the byte limit is the last one of a page.
pub(super) const EMITTED: &str = "SELECT t.phase = 3,
         coalesce((SELECT max(number) FROM segment WHERE task = t.number), 0), p.bodies,
         EXISTS (SELECT FROM input_request WHERE task = t.number AND state = 0 AND audience < 2)
     FROM task t CROSS JOIN LATERAL (
         SELECT array_agg(body ORDER BY number) AS bodies FROM (
             SELECT number, body,
                 sum(octet_length(body)) OVER (ORDER BY number) - octet_length(body) AS before
             FROM (SELECT number, body FROM segment WHERE task = t.number AND number > $3
                 ORDER BY number LIMIT $4) AS s) AS s
         WHERE before = 0 OR before < $5) AS p
     WHERE t.id = $1 AND t.principal = $2";
// Reads only one task: the one that is due first.
pub(super) const CENSUS: &str = "SELECT c.queued + d.queued, c.running + d.running,
     c.parked + d.parked, c.ended + d.ended,
     now_ms($1) - (SELECT min(due_at) FROM task WHERE due_at IS NOT NULL), c.quarantined + d.quarantined,
     c.bytes + d.bytes + (SELECT coalesce(sum(bytes), 0)::bigint FROM quota_release)
     FROM phase_count c, (SELECT coalesce(sum(queued), 0)::bigint AS queued,
         coalesce(sum(running), 0)::bigint AS running, coalesce(sum(parked), 0)::bigint AS parked,
         coalesce(sum(ended), 0)::bigint AS ended, coalesce(sum(quarantined), 0)::bigint AS quarantined,
         coalesce(sum(bytes), 0)::bigint AS bytes FROM phase_change) AS d";
pub(super) const OPEN_INPUT: &str = "SELECT t.tool, t.request, q.body, q.audience, q.due_at
     FROM task t JOIN input_request q ON q.task = t.number
     WHERE t.id = $1 AND t.principal = $2 AND q.wire_key = $3 AND q.state = 0
         AND q.body IS NOT NULL AND q.audience < 2";
pub(super) const READY: &str = "SELECT 1";
pub(super) const STORED: &str = "SELECT stored_bytes($1)";

pub(super) fn view(principal: &str, task: &TaskId) -> Call {
    Call::new(VIEW, values![owned(task.as_str()), owned(principal)])
}

pub(super) fn list(
    principal: &str,
    origin: &str,
    after: Option<&ListCursor>,
    limit: usize,
) -> Call {
    // No task was created before 1970, and no ID is empty.
    let (created, id) =
        after.map_or((0, ""), |after| (to_column(after.created), after.id.as_str()));
    let (principal, origin) = (owned(principal), owned(origin));
    Call::new(LIST, values![principal, origin, created, owned(id), count(limit)])
}

pub(super) fn segments(principal: &str, task: &TaskId, after: u64, limit: PageLimit) -> Call {
    let (after, segments, bytes) = (to_column(after), count(limit.segments), count(limit.bytes));
    let (task, principal) = (owned(task.as_str()), owned(principal));
    Call::new(EMITTED, values![task, principal, after, segments, bytes])
}

pub(super) fn read_segments(rows: &[Row]) -> Result<Option<StoredSegments>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(None) };
    let bodies: Vec<String> = get::<Option<_>>(row, 2)?.unwrap_or_default();
    let blocks = bodies.into_iter().map(|body| raw("segments", body)).collect::<Result<_, _>>()?;
    let (last, ended, asks) = (from_column(get(row, 1)?), get(row, 0)?, get(row, 3)?);
    Ok(Some(StoredSegments { blocks, last, ended, input_required: asks }))
}

pub(super) fn read(rows: &[Row]) -> Result<Vec<TaskRecord>, PostgresError> {
    rows.iter().map(seen_in).collect()
}

pub(super) fn seen_in(row: &Row) -> Result<TaskRecord, PostgresError> {
    let outcome = get::<Option<&str>>(row, 4)?.map(|outcome| from_json("outcome", outcome));
    let time = |column| Ok::<_, PostgresError>(get::<Option<i64>>(row, column)?.map(from_column));
    Ok(TaskRecord {
        id: TaskId::new(name(row, 0)?),
        tool: name(row, 1)?,
        origin: name(row, 2)?,
        phase: phase(get(row, 3)?)?,
        outcome: outcome.transpose()?,
        created_at: from_column(get(row, 5)?),
        updated_at: from_column(get(row, 6)?),
        ttl: time(7)?,
        status_message: optional_name(row, 8)?,
        input_requests: open_inputs(row)?,
        cancel_requested: time(9)?,
        acknowledged: get(row, 15)?,
        progress: progress(get(row, 12)?)?,
    })
}

fn open_inputs(row: &Row) -> Result<Vec<OpenInput>, PostgresError> {
    let names: Vec<String> = get::<Option<_>>(row, 10)?.unwrap_or_default();
    let bodies: Vec<&str> = get::<Option<_>>(row, 11)?.unwrap_or_default();
    let audiences: Vec<i16> = get::<Option<_>>(row, 13)?.unwrap_or_default();
    let dues: Vec<Option<i64>> = get::<Option<_>>(row, 14)?.unwrap_or_default();
    let rows = names.into_iter().zip(bodies).zip(audiences.into_iter().zip(dues));
    rows.map(|((name, body), (to, due))| open_input(from_text(name), body, to, due)).collect()
}

/// Reads an open input request from its columns.
fn open_input(
    name: String,
    body: &str,
    to: i16,
    due: Option<i64>,
) -> Result<OpenInput, PostgresError> {
    Ok(OpenInput {
        name,
        request: from_json("input_request", body)?,
        audience: audience(to, None)?,
        due: due.map(from_column),
    })
}

pub(super) fn input(principal: &str, task: &TaskId, name: &str) -> Call {
    Call::new(OPEN_INPUT, values![owned(task.as_str()), owned(principal), owned(name)])
}

pub(super) fn read_input(rows: &[Row], key: &str) -> Result<Option<InputDetail>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(None) };
    let input = open_input(key.to_owned(), get(row, 2)?, get(row, 3)?, get(row, 4)?)?;
    Ok(Some(InputDetail { tool: name(row, 0)?, call: raw("request", get(row, 1)?)?, input }))
}

/// Returns the cheapest possible statement.
pub(super) fn ready() -> Call {
    Call::new(READY, values![])
}

pub(super) fn stored_bytes(principal: &str) -> Call {
    Call::new(STORED, values![owned(principal)])
}

pub(super) fn read_stored_bytes(rows: &[Row]) -> Result<u64, PostgresError> {
    rows.first().map_or(Ok(0), |row| Ok(from_column(get(row, 0)?)))
}

pub(super) fn census(shared: &Shared) -> Call {
    Call::new(CENSUS, values![shared.shift.get()])
}

pub(super) fn read_census(rows: &[Row]) -> Result<StoreStats, PostgresError> {
    let Some(row) = rows.first() else { return Ok(StoreStats::default()) };
    let number = |column| Ok::<_, PostgresError>(from_column(get(row, column)?));
    let waiting: Option<i64> = get(row, 4)?;
    let waiting = waiting.filter(|waiting| *waiting >= 0);
    Ok(StoreStats {
        queued: number(0)?,
        running: number(1)?,
        parked: number(2)?,
        ended: number(3)?,
        quarantined: number(5)?,
        bytes: number(6)?,
        oldest_due: waiting.map(|waiting| Duration::from_millis(from_column(waiting))),
    })
}

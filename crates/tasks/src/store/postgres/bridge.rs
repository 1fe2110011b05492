//! The table `bridged_call`: the calls that wait for a task.

use std::time::Duration;

use tokio_postgres::Row;

use super::{
    clock::{from_column, millis, to_column},
    column::{count, get, name, owned},
    error::PostgresError,
    state::Shared,
    statement::{Call, CallResult, values},
};
use crate::store::{Attended, Departure, OpenCall, TaskId, WorkerId, bridge::MAX_EVICTED};

pub(super) const JOINABLE: &str = "SELECT run IS NOT NULL, wait FROM joinable_call($1, $2, $3, $4)";
pub(super) const JOIN: &str = "SELECT * FROM join_call($1, $2, $3, $4, $5, $6)";
pub(super) const ATTEND: &str = "SELECT * FROM attend_call($1, $2, $3, $4)";
pub(super) const LEAVE: &str = "SELECT leave_call($1, $2, $3, $4, $5, $6)";
pub(super) const DELIVER: &str = "SELECT deliver_call($1, $2, $3, $4)";
pub(super) const OPEN: &str = "SELECT c.id, t.tool, c.created_at
     FROM bridged_call c JOIN task t ON t.id = c.id
     WHERE c.principal = $1 AND c.scope = $2 AND c.delivered_at IS NULL
     ORDER BY c.created_at DESC, c.task DESC LIMIT $3";
pub(super) const EVICT: &str = "SELECT evict_calls($1, $2, $3)";

/// Principal, scope and fingerprint of a call.
pub(super) struct EqualCall<'a> {
    pub(super) principal: &'a str,
    pub(super) scope: &'a str,
    pub(super) fingerprint: &'a str,
}

/// Returns the statement that checks whether a call can join a run.
pub(super) fn joinable(shared: &Shared, call: &EqualCall<'_>) -> Call {
    let EqualCall { principal, scope, fingerprint } = call;
    let shift = shared.shift.get();
    Call::new(JOINABLE, values![owned(principal), owned(scope), owned(fingerprint), shift])
}

/// A run that a call can join.
pub(super) enum Joinable {
    Now,
    After(Duration),
    Never,
}

pub(super) fn read_joinable(rows: &[Row]) -> Result<Joinable, PostgresError> {
    let Some(row) = rows.first() else { return Ok(Joinable::Never) };
    Ok(match (get(row, 0)?, get::<Option<i64>>(row, 1)?) {
        (true, _) => Joinable::Now,
        (false, Some(wait)) => Joinable::After(Duration::from_millis(from_column(wait))),
        (false, None) => Joinable::Never,
    })
}

pub(super) fn join(shared: &Shared, call: &EqualCall<'_>, worker: &WorkerId) -> Call {
    let EqualCall { principal, scope, fingerprint } = call;
    let (worker, lock, shift) = (owned(worker.as_str()), shared.lock(), shared.shift.get());
    let values = values![owned(principal), owned(scope), owned(fingerprint), worker, lock, shift];
    Call::new(JOIN, values)
}

pub(super) fn read_joined(rows: &[Row]) -> Result<CallResult<Option<Attended>>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(CallResult::new(None)) };
    let task = TaskId::new(name(row, 0)?);
    Ok(CallResult::new(Some(attended(row, task, 1)?)))
}

pub(super) fn attend(shared: &Shared, principal: &str, task: &TaskId, worker: &WorkerId) -> Call {
    let (principal, task) = (owned(principal), owned(task.as_str()));
    Call::new(ATTEND, values![principal, task, owned(worker.as_str()), shared.lock()])
}

pub(super) fn read_attended(
    rows: &[Row],
    task: &TaskId,
) -> Result<CallResult<Option<Attended>>, PostgresError> {
    let attended = rows.first().map(|row| attended(row, task.clone(), 0)).transpose()?;
    Ok(CallResult::new(attended))
}

/// Reads the creation time and the number of pending results from two columns.
fn attended(row: &Row, task: TaskId, column: usize) -> Result<Attended, PostgresError> {
    let pending_results = u32::try_from(get::<i32>(row, column + 1)?).unwrap_or_default();
    Ok(Attended::new(task, from_column(get(row, column)?), pending_results))
}

pub(super) fn leave(
    shared: &Shared,
    principal: &str,
    task: &TaskId,
    worker: &WorkerId,
    how: Departure,
) -> Call {
    let return_after = match how {
        Departure::Round { return_timeout } => Some(millis(return_timeout)),
        Departure::PendingResult | Departure::Lost => None,
    };
    Call::new(
        LEAVE,
        values![
            owned(principal),
            owned(task.as_str()),
            owned(worker.as_str()),
            how == Departure::PendingResult,
            return_after,
            shared.shift.get(),
        ],
    )
}

pub(super) fn deliver(
    shared: &Shared,
    principal: &str,
    task: &TaskId,
    retention: Option<Duration>,
) -> Call {
    let (principal, task) = (owned(principal), owned(task.as_str()));
    Call::new(DELIVER, values![principal, task, retention.map(millis), shared.shift.get()])
}

pub(super) fn open_calls(principal: &str, scope: &str, limit: usize) -> Call {
    Call::new(OPEN, values![owned(principal), owned(scope), count(limit)])
}

pub(super) fn read_open(rows: &[Row]) -> Result<Vec<OpenCall>, PostgresError> {
    let open = rows.iter().map(|row| {
        let task = TaskId::new(name(row, 0)?);
        Ok(OpenCall::new(task, name(row, 1)?, from_column(get(row, 2)?)))
    });
    open.collect()
}

pub(super) fn evict(principal: &str, bytes: u64) -> Call {
    Call::new(EVICT, values![owned(principal), to_column(bytes), count(MAX_EVICTED)])
}

pub(super) fn read_evicted(rows: &[Row]) -> Result<CallResult<u64>, PostgresError> {
    let freed = rows.first().map_or(Ok(0), |row| get(row, 0))?;
    Ok(CallResult::new(from_column(freed)))
}

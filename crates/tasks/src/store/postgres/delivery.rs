//! The table `delivery`: notifications that a receiver has not accepted.

use std::time::Duration;

use tokio_postgres::Row;

use super::{
    clock::{from_column, millis},
    column::{count, get, name, optional_name, owned, unreadable},
    error::PostgresError,
    state::Shared,
    statement::{Call, CallResult, values},
};
use crate::store::{Delivery, TaskEvent, TaskId};

macro_rules! columns {
    ($from:literal) => {
        concat!(
            "SELECT id, task, event, target, input_request, recorded_at, attempts, due_at, error FROM ",
            $from
        )
    };
}

pub(super) const DUE: &str = columns!("lease_deliveries($1, $2, $3, $4)");
pub(super) const SENT: &str = "DELETE FROM delivery WHERE id = $1";
pub(super) const FAILED: &str = "SELECT fail_delivery($1, $2, $3, $4, $5)";
pub(super) const NEXT: &str =
    "SELECT min(d.due_at) - now_ms($2) FROM unnest($1::text[]) AS t (target)
     CROSS JOIN LATERAL (SELECT due_at FROM delivery WHERE target = t.target AND due_at IS NOT NULL
         ORDER BY due_at LIMIT 1) AS d";
pub(super) const FAILING: &str =
    columns!("delivery WHERE error IS NOT NULL ORDER BY number DESC LIMIT $1");
pub(super) const AGAIN: &str = "SELECT send_delivery_again($1, $2)";

pub(super) fn due(shared: &Shared, target: &str, lease: Duration, limit: usize) -> Call {
    Call::new(DUE, values![owned(target), millis(lease), count(limit), shared.shift.get()])
}

pub(super) fn sent(delivery: &str) -> Call {
    Call::new(SENT, values![owned(delivery)])
}

pub(super) fn failed(
    shared: &Shared,
    delivery: &str,
    attempt: u32,
    retry_after: Option<Duration>,
    error: &str,
) -> Call {
    let attempt = i32::try_from(attempt).unwrap_or(i32::MAX);
    let (retry_after, shift) = (retry_after.map(millis), shared.shift.get());
    Call::new(FAILED, values![owned(delivery), attempt, retry_after, owned(error), shift])
}

pub(super) fn next(shared: &Shared, targets: &[String]) -> Call {
    let targets: Vec<_> = targets.iter().map(|target| owned(target)).collect();
    Call::new(NEXT, values![targets, shared.shift.get()])
}

pub(super) fn read_next(rows: &[Row]) -> Result<Option<Duration>, PostgresError> {
    let due: Option<i64> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(due.map(|due| Duration::from_millis(from_column(due))))
}

pub(super) fn failing(limit: usize) -> Call {
    Call::new(FAILING, values![count(limit)])
}

pub(super) fn again(shared: &Shared, delivery: &str) -> Call {
    Call::new(AGAIN, values![owned(delivery), shared.shift.get()])
}

pub(super) fn read_again(rows: &[Row]) -> Result<CallResult<bool>, PostgresError> {
    Ok(CallResult::new(rows.first().map_or(Ok(false), |row| get(row, 0))?))
}

pub(super) fn read(rows: &[Row]) -> Result<Vec<Delivery>, PostgresError> {
    rows.iter().map(delivery).collect()
}

fn delivery(row: &Row) -> Result<Delivery, PostgresError> {
    let event: &str = get(row, 2)?;
    Ok(Delivery {
        id: name(row, 0)?,
        task: TaskId::new(name(row, 1)?),
        event: TaskEvent::from_name(event).ok_or_else(|| unreadable("event", &event))?,
        target: name(row, 3)?,
        input_request: optional_name(row, 4)?,
        at: from_column(get(row, 5)?),
        attempts: u32::try_from(get::<i32>(row, 6)?).unwrap_or_default(),
        due_at: get::<Option<i64>>(row, 7)?.map(from_column),
        error: optional_name(row, 8)?,
    })
}

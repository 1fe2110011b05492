//! Cancellation, expiry, cleanup and deletion of tasks.

use std::time::Duration;

use tokio_postgres::Row;

use super::{
    clock::{millis, to_column},
    column::{count, from_text, get, owned, to_json},
    error::PostgresError,
    state::Shared,
    statement::{Call, CallResult, values},
};
use crate::store::{
    CancelOutcome, ChangeSource, CleanupState, DELIVERY_RETENTION, Lease, MAX_DELIVERIES,
    StoreError, SweepReport, TaskId, TaskOutcome,
};

pub(super) const CANCEL: &str = "SELECT cancel_task($1, $2, $3, $4, $5, $6)";
pub(super) const CLEAN_UP: &str = "UPDATE task SET worker_id = NULL, worker_lock = NULL,
     due_at = CASE WHEN $4 THEN now_ms($5) END
     WHERE id = $1 AND epoch = $3 AND phase = 3 AND due_at IS NOT NULL
     AND (worker_id = $2 OR (worker_id IS NULL AND $4)) RETURNING true";
pub(super) const SWEEP: &str = "SELECT * FROM sweep($1, $2, $3, $4, $5, $6, $7)";

pub(super) fn cancel(
    shared: &Shared,
    principal: &str,
    task: &TaskId,
    at_once: bool,
    retention: Duration,
) -> Result<Call, StoreError> {
    let (principal, task) = (owned(principal), owned(task.as_str()));
    let (outcome, shift) = (to_json(&TaskOutcome::Cancelled)?, shared.shift.get());
    let values = values![principal, task, at_once, outcome, millis(retention), shift];
    Ok(Call::new(CANCEL, values))
}

pub(super) fn read_cancelled(
    rows: &[Row],
    task: &TaskId,
) -> Result<CallResult<Option<CancelOutcome>>, PostgresError> {
    let cancelled: Option<i32> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(match cancelled {
        None => CallResult::new(None),
        Some(0) => CallResult::new(Some(CancelOutcome::AlreadyEnded)),
        Some(1) => CallResult::changing(Some(CancelOutcome::Requested), task, ChangeSource::Other),
        Some(_) => CallResult::changing(Some(CancelOutcome::Cancelled), task, ChangeSource::Other),
    })
}

/// Returns the statement that records the state of a cleanup.
pub(super) fn clean_up(shared: &Shared, lease: &Lease, now: CleanupState) -> Call {
    let (task, worker) = (owned(lease.task.as_str()), owned(lease.worker.as_str()));
    let is_due = now == CleanupState::Due;
    let values = values![task, worker, to_column(lease.epoch), is_due, shared.shift.get()];
    Call::new(CLEAN_UP, values)
}

pub(super) fn read_clean_up(
    rows: &[Row],
    task: &TaskId,
    now: CleanupState,
) -> Result<CallResult<()>, PostgresError> {
    match (rows.is_empty(), now) {
        (true, _) => Err(StoreError::LeaseLost.into()),
        // Another process may start the cleanup immediately.
        (false, CleanupState::Due) => Ok(CallResult::changing((), task, ChangeSource::Other)),
        (false, CleanupState::Done) => Ok(CallResult::new(())),
    }
}

pub(super) fn sweep(
    shared: &Shared,
    limit: usize,
    retention: Duration,
) -> Result<Call, StoreError> {
    let (expired, cancelled) = (to_json(&TaskOutcome::Expired)?, to_json(&TaskOutcome::Cancelled)?);
    Ok(Call::new(
        SWEEP,
        values![
            count(limit),
            expired,
            cancelled,
            millis(retention),
            millis(DELIVERY_RETENTION),
            count(MAX_DELIVERIES),
            shared.shift.get(),
        ],
    ))
}

pub(super) fn read_swept(rows: &[Row]) -> Result<CallResult<SweepReport>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(CallResult::new(SweepReport::default())) };
    let (expired, kept) = (owned_tasks(row, 0)?, get::<Vec<bool>>(row, 2)?);
    let (abandoned, running) = (owned_tasks(row, 5)?, get::<Vec<bool>>(row, 7)?);
    let mut swept = SweepReport {
        purged: usize::try_from(get::<i64>(row, 3)?).unwrap_or_default(),
        more: get(row, 4)?,
        ..SweepReport::default()
    };
    let mut changed = Vec::new();
    for ((owner, task), was_kept) in expired.into_iter().zip(kept) {
        changed.push((task.clone(), ChangeSource::Other));
        match was_kept {
            true => swept.failed.push((owner, task)),
            false => swept.expired.push((owner, task)),
        }
    }
    for ((owner, task), is_running) in abandoned.into_iter().zip(running) {
        changed.push((task.clone(), ChangeSource::Other));
        let how = if is_running { CancelOutcome::Requested } else { CancelOutcome::Cancelled };
        swept.abandoned.push((owner, task, how));
    }
    Ok(CallResult { answer: swept, changed })
}

/// Reads the tasks in a column, and their principals in the next one.
fn owned_tasks(row: &Row, column: usize) -> Result<Vec<(String, TaskId)>, PostgresError> {
    let (tasks, owners): (Vec<String>, Vec<String>) = (get(row, column)?, get(row, column + 1)?);
    let tasks = tasks.into_iter().map(|task| TaskId::new(from_text(task)));
    Ok(owners.into_iter().map(from_text).zip(tasks).collect())
}

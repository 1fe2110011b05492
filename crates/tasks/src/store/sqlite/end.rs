//! Ends of tasks: by outcome or cancellation. Also deletes ended tasks.

use std::time::Duration;

use super::{
    audit,
    batch::Batch,
    clock::{millis, to_column},
    column::{ENDED, RUNNING, count, to_json},
    delivery::{self, Subject},
    error::SqliteError,
    input_request,
    respond::owned,
    statement::{one, run},
    tag,
};
use crate::store::{
    CancelOutcome, ChangeSource, CleanupState, Lease, StoreError, TaskEvent, TaskId, TaskOutcome,
    budget::{TASK_BYTES, VOTE_BYTES},
};

// Without a TTL all sums are NULL, so the task is never deleted. A task that ends late stays
// readable for its retention.
pub(super) const END: &str =
    "UPDATE task SET phase = 3, outcome = ?2, outcome_kind = ?5, worker_id = NULL, due_at = NULL,
     expires_at = NULL, purge_at = max(?3 + ?4, created_at + effective_ttl), effective_ttl = max(effective_ttl, ?3 + ?4 - created_at),
     updated_at = max(?3, updated_at + 1) WHERE number = ?1 AND phase <> 3";
// Like END, for a cancelled or expired task, which may need a cleanup. The cleanup is due when the
// run is gone, at the latest at the end of the lease. It is due immediately if no worker has the
// task, or if its worker (?6) reports the end.
pub(super) const END_UNFINISHED: &str = "UPDATE task SET phase = 3, outcome = ?2,
     outcome_kind = ?5, worker_id = NULL, crash_count = 0,
     due_at = CASE WHEN NOT (has_cleanup AND started) THEN NULL WHEN worker_id IS NULL OR ?6 THEN ?3 ELSE due_at END,
     expires_at = NULL, purge_at = max(?3 + ?4, created_at + effective_ttl), effective_ttl = max(effective_ttl, ?3 + ?4 - created_at),
     updated_at = max(?3, updated_at + 1) WHERE number = ?1 AND phase <> 3";
pub(super) const CLEAN_UP: &str = "UPDATE task SET worker_id = NULL, due_at = ?4
     WHERE id = ?1 AND epoch = ?2 AND phase = 3 AND due_at IS NOT NULL
     AND (worker_id = ?3 OR (worker_id IS NULL AND ?4 IS NOT NULL)) RETURNING number";
pub(super) const ASK_TO_STOP: &str = "UPDATE task SET
     cancel_requested_at = coalesce(cancel_requested_at, ?2), updated_at = max(?2, updated_at + 1)
     WHERE number = ?1";
// `octet_length` reads only the row header, so long values are not loaded. Votes are read per input
// request, so a task without input requests does not search them.
pub(super) const MEASURE: &str = "SELECT principal, octet_length(task_request.body)
     + coalesce(octet_length(outcome), 0)
     + coalesce((SELECT sum(octet_length(key) + octet_length(body)) FROM journal_entry
         WHERE journal_entry.task = task.number), 0)
     + coalesce((SELECT sum(octet_length(scope) + octet_length(body)) FROM segment
         WHERE segment.task = task.number), 0)
     + coalesce((SELECT sum(bytes + coalesce((
             SELECT sum(?2 + octet_length(person) + octet_length(channel) + coalesce(octet_length(reason), 0))
             FROM vote WHERE vote.task = input_request.task AND vote.wire_key = input_request.wire_key), 0))
         FROM input_request WHERE input_request.task = task.number), 0)
     + coalesce((SELECT sum(octet_length(body)) FROM result_part
         WHERE result_part.task = task.number), 0), tags
     FROM task JOIN task_request ON task_request.task = task.number WHERE task.number = ?1";
pub(super) const PURGE: &str = "DELETE FROM task WHERE number = ?1";

/// A task that is about to end.
pub(super) struct Ending<'a> {
    pub(super) subject: Subject<'a>,
    pub(super) principal: &'a str,
    /// Audit event of the end, as JSON; `None` without the event.
    pub(super) end_audit: Option<&'a str>,
    /// Current phase, which is not `ENDED`.
    pub(super) phase: i64,
    /// Whether an input request may be open.
    pub(super) asks: bool,
    pub(super) by: ChangeSource,
}

/// Ends a task that has not ended.
pub(super) fn end(
    batch: &mut Batch<'_>,
    &Ending { subject, principal, end_audit, phase, asks, by }: &Ending<'_>,
    outcome: &TaskOutcome,
    retention: Duration,
) -> Result<(), SqliteError> {
    let (connection, number) = (batch.connection, subject.number);
    if asks {
        let withdrawn = input_request::withdraw_all(batch, &subject)?;
        input_request::update_task(batch, number, 0, withdrawn)?;
    }
    let json = to_json(outcome)?;
    let (now, retention, kind) = (batch.now(), millis(retention), outcome.kind());
    let ended = match outcome.needs_cleanup() {
        false => run(connection, END, (number, &json, now, retention, kind.column()))?,
        true => {
            let is_of_worker = by == ChangeSource::Worker;
            let values = (number, &json, now, retention, kind.column(), is_of_worker);
            run(connection, END_UNFINISHED, values)?
        }
    };
    if ended == 0 {
        return Ok(());
    }
    audit::end(batch, end_audit, principal, kind)?;
    delivery::notify(batch, &subject, TaskEvent::TaskEnded, None)?;
    batch.moved(phase, ENDED);
    batch.count_bytes(principal, count(json.len()))?;
    batch.count_out(principal)
}

/// Records the state of a cleanup.
pub(super) fn clean_up(
    batch: &mut Batch<'_>,
    lease: &Lease,
    now: CleanupState,
) -> Result<(), SqliteError> {
    let due = (now == CleanupState::Due).then(|| batch.now());
    let values = (lease.task.as_str(), to_column(lease.epoch), lease.worker.as_str(), due);
    let number = one(batch.connection, CLEAN_UP, values, |row| row.get(0))?;
    let number = number.ok_or(SqliteError::Store(StoreError::LeaseLost))?;
    if now == CleanupState::Due {
        // Another process may start the cleanup immediately.
        batch.changed(number, &lease.task, ChangeSource::Other);
    }
    Ok(())
}

pub(super) fn cancel(
    batch: &mut Batch<'_>,
    principal: &str,
    task: &TaskId,
    at_once: bool,
    retention: Duration,
) -> Result<Option<CancelOutcome>, SqliteError> {
    let Some(owned) = owned(batch, principal, task)? else { return Ok(None) };
    let (phase, subject) = (owned.phase, owned.subject(task));
    if phase == ENDED {
        return Ok(Some(CancelOutcome::AlreadyEnded));
    }
    let (end_audit, by) = (owned.end_audit.as_deref(), ChangeSource::Other);
    let ending = Ending { subject, principal, end_audit, phase, asks: true, by };
    cancel_open(batch, &ending, at_once, retention).map(Some)
}

/// Cancels a task that has not ended.
pub(super) fn cancel_open(
    batch: &mut Batch<'_>,
    ending: &Ending<'_>,
    at_once: bool,
    retention: Duration,
) -> Result<CancelOutcome, SqliteError> {
    let Subject { number, task, .. } = ending.subject;
    run(batch.connection, ASK_TO_STOP, (number, batch.now()))?;
    let cancelled = match ending.phase == RUNNING && !at_once {
        true => CancelOutcome::Requested,
        false => {
            end(batch, ending, &TaskOutcome::Cancelled, retention)?;
            CancelOutcome::Cancelled
        }
    };
    batch.changed(number, task, ChangeSource::Other);
    Ok(cancelled)
}

/// Deletes a task, and subtracts its bytes from its principal. Returns these bytes.
pub(super) fn purge(batch: &mut Batch<'_>, number: i64) -> Result<i64, SqliteError> {
    let measured = one(batch.connection, MEASURE, (number, count(VOTE_BYTES)), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?, row.get::<_, Option<String>>(2)?))
    })?;
    let mut freed = 0;
    if let Some((principal, bytes, tags)) = measured {
        let tag_bytes = tag::delete(batch.connection, number, tags.as_deref())?;
        freed = bytes + count(TASK_BYTES + tag_bytes);
        batch.count_bytes(&principal, -freed)?;
    }
    run(batch.connection, PURGE, [number])?;
    Ok(freed)
}

//! The table `audit_event`: the audit log.

use std::{fmt::Write, sync::LazyLock, time::Duration};

use rusqlite::{Connection, Row, ToSql, params_from_iter};

use super::{
    batch::Batch,
    clock::{from_column, millis, to_column},
    column::{count, from_json, to_json},
    error::SqliteError,
    statement::{all, run},
};
use crate::store::{AuditEvent, AuditRecord, EndAudit, OutcomeKind};

pub(super) const RECORD: &str =
    "INSERT INTO audit_event (recorded_at, expires_at, task, principal, action, reason, worker_id)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
pub(super) const OF_ALL: &str =
    "SELECT number, recorded_at, task, principal, action, reason, worker_id FROM audit_event
     WHERE number > ?1 ORDER BY number LIMIT ?2";
pub(super) const OF_ONE: &str =
    "SELECT number, recorded_at, task, principal, action, reason, worker_id FROM audit_event
     WHERE task = ?3 AND number > ?1 ORDER BY number LIMIT ?2";
// Checks only the oldest rows. With a constant retention, events expire in the order of their
// numbers. After a change of the retention, some events are deleted late. An index on `expires_at`
// would cost as much as the event itself.
pub(super) const SWEEP: &str = "DELETE FROM audit_event WHERE expires_at <= ?1
     AND number < (SELECT min(number) FROM audit_event) + ?2";

// Numbers have no gaps, except where sweeps have deleted the oldest events.
pub(super) const DROP: &str =
    "DELETE FROM audit_event WHERE number <= (SELECT max(number) FROM audit_event) - ?1";

/// Rows per multi-row insert. Each statement reads and updates the last number, so fewer statements
/// are cheaper.
const TOGETHER: usize = 32;

static RECORD_TOGETHER: LazyLock<String> = LazyLock::new(|| {
    let mut sql = RECORD.to_owned();
    for row in 1..TOGETHER {
        let [task, principal, action, reason, worker] =
            [3, 4, 5, 6, 7].map(|column| 5 * row + column);
        // Writing to a `String` does not fail.
        let _ = write!(sql, ", (?1, ?2, ?{task}, ?{principal}, ?{action}, ?{reason}, ?{worker})");
    }
    sql
});

pub(super) fn record(
    batch: &Batch<'_>,
    events: &[AuditEvent],
    retention: Duration,
    max_events: u64,
) -> Result<(), SqliteError> {
    insert(batch, events, retention)?;
    run(batch.connection, DROP, [to_column(max_events)])?;
    Ok(())
}

/// Appends events without a limit of their number, which the next [`record`] applies.
pub(super) fn insert(
    batch: &Batch<'_>,
    events: &[AuditEvent],
    retention: Duration,
) -> Result<(), SqliteError> {
    let at = batch.now();
    let expires = at + millis(retention);
    let (together, alone) = events.as_chunks::<TOGETHER>();
    for events in together {
        run(batch.connection, &RECORD_TOGETHER, params_from_iter(columns(&at, &expires, events)))?;
    }
    for event in alone {
        let columns = columns(&at, &expires, std::slice::from_ref(event));
        run(batch.connection, RECORD, params_from_iter(columns))?;
    }
    Ok(())
}

/// Converts the audit event of a new task's end to its column.
pub(super) fn end_column(audit: Option<&EndAudit>) -> Result<Option<String>, SqliteError> {
    audit.map(|audit| to_json(&(&audit.task, millis(audit.retention)))).transpose()
}

/// Appends the audit event of the end of a task, if its column has one.
pub(super) fn end(
    batch: &Batch<'_>,
    column: Option<&str>,
    principal: &str,
    outcome: OutcomeKind,
) -> Result<(), SqliteError> {
    let Some(column) = column else { return Ok(()) };
    let (task, retention): (String, u64) = from_json("audit event", column)?;
    let audit = EndAudit::new(task, Duration::from_millis(retention));
    insert(batch, &[audit.event(principal, outcome)], audit.retention)
}

fn columns<'a>(
    at: &'a i64,
    expires: &'a i64,
    events: &'a [AuditEvent],
) -> impl Iterator<Item = &'a dyn ToSql> {
    let rows = events.iter().flat_map(|event| {
        let AuditEvent { task, principal, action, reason, worker } = event;
        [task as &dyn ToSql, principal, action, reason, worker]
    });
    [at as &dyn ToSql, expires].into_iter().chain(rows)
}

pub(super) fn audit(
    connection: &Connection,
    task: Option<&str>,
    after: u64,
    limit: usize,
) -> Result<Vec<AuditRecord>, SqliteError> {
    let (after, limit) = (to_column(after), count(limit));
    Ok(match task {
        Some(task) => all(connection, OF_ONE, (after, limit, task), read)?,
        None => all(connection, OF_ALL, (after, limit), read)?,
    })
}

fn read(row: &Row<'_>) -> rusqlite::Result<AuditRecord> {
    Ok(AuditRecord {
        number: from_column(row.get(0)?),
        at: from_column(row.get(1)?),
        event: AuditEvent {
            task: row.get(2)?,
            principal: row.get(3)?,
            action: row.get(4)?,
            reason: row.get(5)?,
            worker: row.get(6)?,
        },
    })
}

/// Deletes expired events. Returns the number of deleted events.
pub(super) fn sweep(batch: &Batch<'_>, limit: usize) -> Result<usize, SqliteError> {
    Ok(run(batch.connection, SWEEP, (batch.now(), count(limit)))?)
}

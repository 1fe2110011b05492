//! The table `audit_event`: the audit log.

use std::time::Duration;

use tokio_postgres::Row;

use super::{
    clock::{from_column, millis, to_column},
    column::{count, get, name, optional_name, owned, text, to_json},
    error::PostgresError,
    state::Shared,
    statement::{Call, values},
};
use crate::store::{AuditEvent, AuditRecord, EndAudit, StoreError};

pub(super) const RECORD: &str = "SELECT append_audit_events($1, $2, $3, $4, $5, $6, $7, $8)";
pub(super) const ALL: &str =
    "SELECT number, recorded_at, task, principal, action, reason, worker_id FROM audit_event
     WHERE number > $1 ORDER BY number LIMIT $2";
pub(super) const OF_TASK: &str =
    "SELECT number, recorded_at, task, principal, action, reason, worker_id FROM audit_event
     WHERE task = $3 AND number > $1 ORDER BY number LIMIT $2";

pub(super) fn record(
    shared: &Shared,
    events: &[AuditEvent],
    retention: Duration,
    max_events: u64,
) -> Call {
    let each = |part: fn(&AuditEvent) -> &str| {
        events.iter().map(|event| owned(part(event))).collect::<Vec<_>>()
    };
    let optional = |part: fn(&AuditEvent) -> Option<&String>| {
        events.iter().map(|event| part(event).map(|text| owned(text))).collect::<Vec<_>>()
    };
    Call::new(
        RECORD,
        values![
            each(|event| &event.task),
            each(|event| &event.principal),
            each(|event| &event.action),
            optional(|event| event.reason.as_ref()),
            optional(|event| event.worker.as_ref()),
            millis(retention),
            to_column(max_events),
            shared.shift.get(),
        ],
    )
}

/// Converts the audit event of a new task's end to its column. The schema reads the task, so it is
/// escaped.
pub(super) fn end_column(audit: Option<&EndAudit>) -> Result<Option<String>, StoreError> {
    audit.map(|audit| to_json(&(text(&audit.task), millis(audit.retention)))).transpose()
}

pub(super) fn audit(task: Option<&str>, after: u64, limit: usize) -> Call {
    let (after, limit) = (to_column(after), count(limit));
    match task {
        Some(task) => Call::new(OF_TASK, values![after, limit, owned(task)]),
        None => Call::new(ALL, values![after, limit]),
    }
}

pub(super) fn read(rows: &[Row]) -> Result<Vec<AuditRecord>, PostgresError> {
    rows.iter().map(event).collect()
}

fn event(row: &Row) -> Result<AuditRecord, PostgresError> {
    Ok(AuditRecord {
        number: from_column(get(row, 0)?),
        at: from_column(get(row, 1)?),
        event: AuditEvent {
            task: name(row, 2)?,
            principal: name(row, 3)?,
            action: name(row, 4)?,
            reason: optional_name(row, 5)?,
            worker: optional_name(row, 6)?,
        },
    })
}

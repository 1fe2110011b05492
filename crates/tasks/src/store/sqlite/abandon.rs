//! Abandoned tasks: bridged tasks whose client left and did not return.

use std::time::Duration;

use super::{
    batch::Batch,
    column::{ENDED, count},
    delivery::Subject,
    end::{self, Ending},
    error::SqliteError,
    statement::{all, one, run},
};
use crate::store::{ChangeSource, SweepReport, TaskId};

pub(super) const NEXT_ATTENDANT: &str =
    "SELECT min(attended_by) FROM bridged_call WHERE attended_by > ?1";
// A client that knows the task does not abandon it.
pub(super) const LOSE: &str = "UPDATE bridged_call SET attended_by = NULL, attendants = 0,
     abandon_at = (SELECT ?2 + bridged_call.abandon_after FROM task
         WHERE task.number = bridged_call.task AND acknowledged_at IS NULL)
     WHERE attended_by = ?1";
pub(super) const DUE: &str =
    "SELECT number, id, task.principal, phase, open, notify, end_audit FROM bridged_call
     JOIN task ON task.number = bridged_call.task
     WHERE abandon_at <= ?1 ORDER BY abandon_at LIMIT ?2";
pub(super) const RESTART: &str =
    "UPDATE bridged_call SET abandon_at = ?2 + abandon_after WHERE task = ?1";
pub(super) const STOP: &str = "UPDATE bridged_call SET abandon_at = NULL WHERE task = ?1";

/// Cancels the abandoned tasks, and adds them to the report. Returns the number of calls whose
/// timeout is resolved.
pub(super) fn sweep(
    batch: &mut Batch<'_>,
    limit: usize,
    retention: Duration,
    swept: &mut SweepReport,
) -> Result<usize, SqliteError> {
    let (connection, now) = (batch.connection, batch.now());
    lose_attendants(batch, now)?;
    let due = all(connection, DUE, (now, count(limit)), |row| {
        let task = (row.get::<_, String>(2)?, TaskId::new(row.get::<_, String>(1)?));
        let columns: (i64, i64, i64) = (row.get(0)?, row.get(3)?, row.get(4)?);
        let texts: [Option<String>; 2] = [row.get(5)?, row.get(6)?];
        Ok((columns, task, texts))
    })?;
    let mut resolved = 0;
    for ((number, phase, open), (principal, task), [notify, end_audit]) in due {
        if open > 0 {
            run(connection, RESTART, (number, now))?;
            continue;
        }
        resolved += 1;
        run(connection, STOP, [number])?;
        if phase != ENDED {
            let subject = Subject { number, task: &task, notify: notify.as_deref() };
            let (end_audit, by) = (end_audit.as_deref(), ChangeSource::Other);
            let ending =
                Ending { subject, principal: &principal, end_audit, phase, asks: false, by };
            let how = end::cancel_open(batch, &ending, false, retention)?;
            swept.abandoned.push((principal, task, how));
        }
    }
    Ok(resolved)
}

/// Starts the abandon timeout of the tasks that dead workers attend.
fn lose_attendants(batch: &Batch<'_>, now: i64) -> Result<(), SqliteError> {
    let mut worker = String::new();
    while let Some(next) =
        one(batch.connection, NEXT_ATTENDANT, [&worker], |row| row.get(0))?.flatten()
    {
        worker = next;
        if batch.file.workers.is_gone(&worker) {
            run(batch.connection, LOSE, (&worker, now))?;
        }
    }
    Ok(())
}

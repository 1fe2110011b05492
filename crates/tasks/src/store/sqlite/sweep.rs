//! The periodic sweep: expires tasks, cancels abandoned ones, and deletes old rows.

use std::time::Duration;

use super::{
    abandon, audit,
    batch::Batch,
    column::{ENDED, count, from_json},
    delivery::{self, Subject},
    end::{self, Ending},
    error::SqliteError,
    key_value,
    statement::all,
};
use crate::store::{ChangeSource, SweepReport, TaskId, TaskOutcome};

pub(super) const OLD: &str =
    "SELECT number FROM task WHERE purge_at <= ?1 AND due_at IS NULL ORDER BY purge_at LIMIT ?2";
pub(super) const EXPIRED: &str =
    "SELECT number, id, phase, principal, CASE phase WHEN 4 THEN quarantine_outcome END, notify,
     end_audit FROM task WHERE expires_at <= ?1 ORDER BY expires_at LIMIT ?2";

pub(super) fn sweep(
    batch: &mut Batch<'_>,
    limit: usize,
    retention: Duration,
) -> Result<SweepReport, SqliteError> {
    let (connection, now) = (batch.connection, batch.now());
    let old = all(connection, OLD, (now, count(limit)), |row| row.get::<_, i64>(0))?;
    for number in &old {
        end::purge(batch, *number)?;
    }
    let purged = old.len();
    batch.count(ENDED, -count(purged));
    let expired = all(connection, EXPIRED, (now, count(limit)), |row| {
        let task = (row.get::<_, String>(3)?, TaskId::new(row.get::<_, String>(1)?));
        let texts: [Option<String>; 3] = [row.get(4)?, row.get(5)?, row.get(6)?];
        Ok(((row.get(0)?, row.get(2)?), texts, task))
    })?;
    let over = expired.len();
    let mut swept = SweepReport { purged, ..SweepReport::default() };
    for ((number, phase), [kept, notify, end_audit], (principal, task)) in expired {
        let subject = Subject { number, task: &task, notify: notify.as_deref() };
        let (end_audit, by) = (end_audit.as_deref(), ChangeSource::Other);
        let ending = Ending { subject, principal: &principal, end_audit, phase, asks: true, by };
        // An expired quarantine ends with the outcome that the task had before it.
        let kept = kept.as_deref().and_then(|kept| from_json("outcome", kept).ok());
        let is_kept = kept.is_some();
        end::end(batch, &ending, &kept.unwrap_or(TaskOutcome::Expired), retention)?;
        batch.changed(number, &task, ChangeSource::Other);
        match is_kept {
            true => swept.failed.push((principal, task)),
            false => swept.expired.push((principal, task)),
        }
    }
    let resolved = abandon::sweep(batch, limit, retention, &mut swept)?;
    let (entries, events) = (key_value::sweep(batch, limit)?, audit::sweep(batch, limit)?);
    let deliveries = delivery::sweep(batch, limit)?;
    swept.more = [purged, over, resolved, entries, events, deliveries].contains(&limit);
    Ok(swept)
}

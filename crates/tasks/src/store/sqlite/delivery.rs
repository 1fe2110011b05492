//! The table `delivery`: notifications that no receiver has accepted.

use std::time::Duration;

use rusqlite::{Connection, Row};
use serde_json::json;

use super::{
    batch::Batch,
    clock::{from_column, millis},
    column::{count, from_json, to_json},
    error::SqliteError,
    statement::{all, one, run},
};
use crate::store::{DELIVERY_RETENTION, Delivery, MAX_DELIVERIES, Subscription, TaskEvent, TaskId};

pub(super) const INSERT: &str =
    "INSERT INTO delivery (id, task, event, target, wire_key, recorded_at, due_at, attempts)
     VALUES (lower(hex(randomblob(16))), ?1, ?2, ?3, ?4, ?5, ?5, 0)";
pub(super) const DUE: &str =
    "SELECT id, task, event, target, wire_key, recorded_at, attempts, due_at,
     error, number FROM delivery WHERE target = ?1 AND due_at <= ?2 ORDER BY due_at LIMIT ?3";
pub(super) const LEASE: &str =
    "UPDATE delivery SET due_at = ?2, attempts = attempts + 1 WHERE number = ?1";
pub(super) const SENT: &str = "DELETE FROM delivery WHERE id = ?1";
// After the end of a lease, another sender has increased the number of attempts.
pub(super) const FAILED: &str =
    "UPDATE delivery SET due_at = ?3, error = ?4 WHERE id = ?1 AND attempts = ?2";
pub(super) const NEXT: &str = "SELECT min((SELECT min(due_at) FROM delivery
         WHERE target = value AND due_at IS NOT NULL)) FROM json_each(?1)";
pub(super) const FAILING: &str = "SELECT id, task, event, target, wire_key, recorded_at, attempts,
     due_at, error FROM delivery WHERE error IS NOT NULL AND recorded_at > 0
     ORDER BY recorded_at DESC, number DESC LIMIT ?1";
pub(super) const AGAIN: &str =
    "UPDATE delivery SET due_at = ?2, attempts = 0, error = NULL WHERE id = ?1";
// Numbers grow with the time, so the oldest rows are the first.
pub(super) const SWEEP: &str = "DELETE FROM delivery WHERE recorded_at <= ?1
     AND number < (SELECT min(number) FROM delivery) + ?2";
pub(super) const ENDS: &str =
    "SELECT (SELECT min(number) FROM delivery), (SELECT max(number) FROM delivery)";
pub(super) const DROP: &str = "DELETE FROM delivery WHERE number <= (SELECT number FROM delivery
         WHERE number > 0 ORDER BY number DESC LIMIT 1 OFFSET ?1)";

/// A task whose events are delivered.
#[derive(Clone, Copy)]
pub(super) struct Subject<'a> {
    pub(super) number: i64,
    pub(super) task: &'a TaskId,
    /// Subscriptions, as JSON; `None` without subscriptions.
    pub(super) notify: Option<&'a str>,
}

/// Converts the subscriptions of a new task to its column.
pub(super) fn subscriptions(notify: &[Subscription]) -> Result<Option<String>, SqliteError> {
    (!notify.is_empty()).then(|| to_json(&notify)).transpose()
}

/// Writes the deliveries of an event, one per subscribed target.
pub(super) fn notify(
    batch: &Batch<'_>,
    subject: &Subject<'_>,
    event: TaskEvent,
    name: Option<&str>,
) -> Result<(), SqliteError> {
    let Some(notify) = subject.notify else { return Ok(()) };
    let subscriptions: Vec<Subscription> = from_json("subscriptions", notify)?;
    for Subscription { target, .. } in subscriptions.iter().filter(|one| one.event == event) {
        let values = (subject.task.as_str(), event.as_str(), target, name, batch.now());
        run(batch.connection, INSERT, values)?;
    }
    Ok(())
}

/// Leases due deliveries.
pub(super) fn lease(
    batch: &Batch<'_>,
    target: &str,
    lease: Duration,
    limit: usize,
) -> Result<Vec<Delivery>, SqliteError> {
    let now = batch.now();
    let due = all(batch.connection, DUE, (target, now, count(limit)), |row| {
        Ok((read(row)?, row.get::<_, i64>(9)?))
    })?;
    let until = now + millis(lease);
    let mut leased = Vec::with_capacity(due.len());
    for (delivery, number) in due {
        run(batch.connection, LEASE, (number, until))?;
        leased.extend(delivery.map(|delivery| Delivery {
            attempts: delivery.attempts + 1,
            due_at: Some(from_column(until)),
            ..delivery
        }));
    }
    Ok(leased)
}

pub(super) fn sent(batch: &Batch<'_>, delivery: &str) -> Result<(), SqliteError> {
    run(batch.connection, SENT, [delivery])?;
    Ok(())
}

pub(super) fn failed(
    batch: &Batch<'_>,
    (delivery, attempt): (&str, u32),
    retry_after: Option<Duration>,
    error: &str,
) -> Result<(), SqliteError> {
    let due = retry_after.map(|after| batch.now() + millis(after));
    run(batch.connection, FAILED, (delivery, attempt, due, error))?;
    Ok(())
}

/// Returns the time until a delivery is due.
pub(super) fn next(
    connection: &Connection,
    now: i64,
    targets: &[String],
) -> Result<Option<Duration>, SqliteError> {
    let targets = json!(targets).to_string();
    let due = one(connection, NEXT, [targets], |row| row.get::<_, Option<i64>>(0))?.flatten();
    Ok(due.map(|due| Duration::from_millis(from_column(due - now))))
}

pub(super) fn failing(connection: &Connection, limit: usize) -> Result<Vec<Delivery>, SqliteError> {
    Ok(all(connection, FAILING, [count(limit)], read)?.into_iter().flatten().collect())
}

/// Makes a delivery due. Returns whether it exists.
pub(super) fn send_again(batch: &Batch<'_>, delivery: &str) -> Result<bool, SqliteError> {
    Ok(run(batch.connection, AGAIN, (delivery, batch.now()))? > 0)
}

/// Deletes old deliveries, and the oldest above the limit. Returns the number of old ones.
pub(super) fn sweep(batch: &Batch<'_>, limit: usize) -> Result<usize, SqliteError> {
    let connection = batch.connection;
    let until = batch.now() - millis(DELIVERY_RETENTION);
    let swept = run(connection, SWEEP, (until, count(limit)))?;
    let ends = one(connection, ENDS, [], |row| {
        Ok(row.get::<_, Option<i64>>(0)?.zip(row.get::<_, Option<i64>>(1)?))
    })?;
    // Nearly always, the numbers show that there are few deliveries, and no row is read.
    let max = count(MAX_DELIVERIES);
    if ends.flatten().is_some_and(|(first, last)| last - first >= max) {
        run(connection, DROP, [max])?;
    }
    Ok(swept)
}

/// Reads a delivery. Skips one whose event a newer version of this program has written.
fn read(row: &Row<'_>) -> rusqlite::Result<Option<Delivery>> {
    let event: String = row.get(2)?;
    let Some(event) = TaskEvent::from_name(&event) else {
        tracing::warn!(event, "delivery of an unknown event is skipped; upgrade this program");
        return Ok(None);
    };
    Ok(Some(Delivery {
        id: row.get(0)?,
        task: TaskId::new(row.get::<_, String>(1)?),
        event,
        target: row.get(3)?,
        input_request: row.get(4)?,
        at: from_column(row.get(5)?),
        attempts: row.get(6)?,
        due_at: row.get::<_, Option<i64>>(7)?.map(from_column),
        error: row.get(8)?,
    }))
}

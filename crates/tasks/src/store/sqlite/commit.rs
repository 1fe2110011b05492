//! Commits of workers: changes under a lease, and the following transition.

use std::time::Duration;

use super::{
    batch::Batch,
    byte_limit,
    clock::{millis, to_column},
    column::{KEPT, PARKED, QUEUED, RUNNING, count, to_json},
    delivery::{self, Subject},
    end::{self, Ending},
    error::SqliteError,
    input_request::{self, Listing},
    journal::{self, EntryTime},
    result_part,
    statement::{one, run},
    tag,
};
use crate::store::{
    ChangeSource, Changes, Lease, RecordedEntry, StoreError, TaskEvent, TaskOutcome, Transition,
    UnixMillis,
};

// A worker that has lost its lease matches no row, so it writes nothing.
pub(super) const HELD: &str = "SELECT number, principal, crash_count, open, updated_at, indexed,
     CASE indexed WHEN 1 THEN person END, notify, end_audit FROM task
     WHERE id = ?1 AND epoch = ?2 AND worker_id = ?3 AND phase = 1";
pub(super) const TOUCH: &str = "UPDATE task SET updated_at = max(?2, updated_at + 1),
     status_message = coalesce(?3, status_message), progress = coalesce(?4, progress) WHERE number = ?1";
pub(super) const FORGET_CRASHES: &str = "UPDATE task SET crash_count = 0 WHERE number = ?1";
pub(super) const IS_TO_STOP: &str =
    "SELECT cancel_requested_at IS NOT NULL FROM task WHERE number = ?1";
pub(super) const PARK: &str =
    "UPDATE task SET phase = ?2, due_at = ?3, worker_id = NULL WHERE number = ?1";

// Without a TTL the sums are NULL, so the task stays quarantined without a limit.
pub(super) const KEEP: &str = "UPDATE task SET phase = 4, quarantine_outcome = ?2, due_at = NULL, worker_id = NULL,
     effective_ttl = max(effective_ttl, ?3 + ?4 - created_at), expires_at = max(created_at + effective_ttl, ?3 + ?4) WHERE number = ?1";

/// Minimum interval between updates of `updated_at` while a task only records steps. Without this
/// update, the commit does not write the page of the task's row.
const SECOND: i64 = 1_000;

pub(super) fn write(
    batch: &mut Batch<'_>,
    lease: &Lease,
    changes: &Changes,
    then: &Transition,
) -> Result<(), SqliteError> {
    let row = held(batch, lease)?;
    let TaskRow { number, principal, crashes, open, updated, .. } = &row;
    let (number, subject) = (*number, row.subject(lease));
    if !byte_limit::fits(batch, (principal, number), changes, then)? {
        return Err(StoreError::BytesExceeded.into());
    }
    let Changes { status_message: message, progress, input_requests: asked, withdrawn, .. } =
        changes;
    let has_words = message.is_some() || progress.is_some();
    let has_time = match then {
        Transition::Continue => {
            !asked.is_empty() || !withdrawn.is_empty() || *updated + SECOND <= batch.now()
        }
        // Parking does not change the visible state of a task that only waits.
        Transition::Park { .. } => !changes.is_empty(),
        Transition::Quarantine { .. } => true,
        // The end of the task sets `updated_at`.
        Transition::End { .. } => false,
    };
    if has_words || has_time {
        touch(batch, number, changes)?;
    }
    let (recorded, bytes) = apply(batch, &subject, row.listing(), changes)?;
    if bytes != 0 {
        batch.count_bytes(principal, bytes)?;
    }
    if recorded && *crashes > 0 {
        run(batch.connection, FORGET_CRASHES, [number])?;
    }
    match then {
        Transition::Continue => {}
        Transition::Park { due_at: due, responses_seen: seen } => park(batch, number, *due, *seen)?,
        Transition::Quarantine { outcome, ttl } => keep(batch, &subject, outcome, *ttl)?,
        Transition::End { outcome, retention } => {
            let asks = *open > 0 || !changes.input_requests.is_empty();
            let (end_audit, by) = (row.end_audit.as_deref(), ChangeSource::Worker);
            let ending = Ending { subject, principal, end_audit, phase: RUNNING, asks, by };
            end::end(batch, &ending, outcome, *retention)?;
        }
    }
    if changes.is_visible() || !matches!(then, Transition::Continue) {
        batch.changed(number, &lease.task, ChangeSource::Worker);
    }
    Ok(())
}

/// Columns of a task that a commit needs.
struct TaskRow {
    number: i64,
    principal: String,
    crashes: u32,
    /// Number of open input requests.
    open: i64,
    updated: i64,
    is_indexed: bool,
    /// Person of an indexed task.
    person: Option<String>,
    /// Subscriptions, as JSON.
    notify: Option<String>,
    /// Audit event of the end, as JSON.
    end_audit: Option<String>,
}

impl TaskRow {
    fn subject<'a>(&'a self, lease: &'a Lease) -> Subject<'a> {
        Subject { number: self.number, task: &lease.task, notify: self.notify.as_deref() }
    }

    fn listing(&self) -> Listing<'_> {
        Listing { is_indexed: self.is_indexed, person: self.person.as_deref() }
    }
}

/// Returns the task if the lease is still valid.
fn held(batch: &Batch<'_>, lease: &Lease) -> Result<TaskRow, SqliteError> {
    let place = (lease.task.as_str(), to_column(lease.epoch), lease.worker.as_str());
    let held = one(batch.connection, HELD, place, |row| {
        Ok(TaskRow {
            number: row.get(0)?,
            principal: row.get(1)?,
            crashes: row.get(2)?,
            open: row.get(3)?,
            updated: row.get(4)?,
            is_indexed: row.get(5)?,
            person: row.get(6)?,
            notify: row.get(7)?,
            end_audit: row.get(8)?,
        })
    })?;
    held.ok_or(SqliteError::Store(StoreError::LeaseLost))
}

/// Updates the time of the last change, the status message and the progress.
fn touch(batch: &Batch<'_>, number: i64, changes: &Changes) -> Result<(), SqliteError> {
    let message = changes.status_message.as_deref();
    let progress = changes.progress.as_ref().map(|progress| progress.get());
    run(batch.connection, TOUCH, (number, batch.now(), message, progress))?;
    Ok(())
}

/// Writes the changes. Returns whether an entry is new, and the number of added bytes.
fn apply(
    batch: &Batch<'_>,
    subject: &Subject<'_>,
    listing: Listing<'_>,
    changes: &Changes,
) -> Result<(bool, i64), SqliteError> {
    let (connection, number) = (batch.connection, subject.number);
    let (mut recorded, mut freed) = (0, 0);
    let recorded_at = listing.is_indexed.then(|| batch.now());
    for key in &changes.invalidated {
        freed += journal::forget(connection, number, key)?;
    }
    for RecordedEntry { key, entry, duration } in &changes.entries {
        let time = EntryTime { recorded_at, duration: *duration };
        recorded += journal::record(connection, number, (key, entry), time)?;
    }
    let emitted = journal::emit(connection, number, &changes.segments)?;
    let parts = result_part::insert(connection, number, &changes.result_parts)?;
    let (mut opened, mut closed, mut asking) = (0, 0, 0);
    for asked in &changes.input_requests {
        if let Some(bytes) = input_request::open(batch, subject, listing, asked)? {
            opened += 1;
            asking += bytes;
        }
    }
    for name in &changes.withdrawn {
        closed += usize::from(input_request::withdraw(batch, subject, name)?);
    }
    input_request::update_task(batch, number, opened, closed)?;
    let tags = tag::add(connection, number, &changes.tags)?;
    Ok((recorded > 0, count(recorded + emitted + parts + tags) + asking - freed))
}

fn park(
    batch: &mut Batch<'_>,
    number: i64,
    due: Option<UnixMillis>,
    seen: usize,
) -> Result<(), SqliteError> {
    // Responses and cancellations that arrived during this commit would not wake a parked task.
    let is_to_stop = one(batch.connection, IS_TO_STOP, [number], |row| row.get(0))?;
    let unseen = is_to_stop.unwrap_or_default()
        || journal::count_answers(batch.connection, number)? > count(seen);
    let (phase, due) = match unseen {
        true => (QUEUED, Some(batch.now())),
        false => (PARKED, due.map(to_column)),
    };
    run(batch.connection, PARK, (number, phase, due))?;
    batch.moved(RUNNING, phase);
    Ok(())
}

/// Quarantines a task. A task whose cancellation was requested is queued instead, so that a worker
/// cancels it.
fn keep(
    batch: &mut Batch<'_>,
    subject: &Subject<'_>,
    outcome: &TaskOutcome,
    hold: Duration,
) -> Result<(), SqliteError> {
    let number = subject.number;
    let is_to_stop = one(batch.connection, IS_TO_STOP, [number], |row| row.get(0))?;
    if is_to_stop.unwrap_or_default() {
        run(batch.connection, PARK, (number, QUEUED, Some(batch.now())))?;
        batch.moved(RUNNING, QUEUED);
        return Ok(());
    }
    let values = (number, to_json(outcome)?, batch.now(), millis(hold));
    run(batch.connection, KEEP, values)?;
    batch.moved(RUNNING, KEPT);
    delivery::notify(batch, subject, TaskEvent::TaskQuarantined, None)
}

//! Creation of tasks.

use rusqlite::{Connection, params};

use super::{
    audit,
    batch::Batch,
    bridge,
    clock::{from_column, millis, to_column},
    column::{PARKED, QUEUED, RUNNING, count, to_json},
    delivery::{self, Subject},
    error::SqliteError,
    input_request::{self, Listing},
    journal::{self, EntryTime},
    statement::{one, run},
    tag,
};
use crate::store::{
    ChangeSource, CreateOutcome, IdempotencyKey, Lease, NewTask, StoreError, TaskId, budget,
};

pub(super) const MADE_UNDER: &str =
    "SELECT id, idempotency_fingerprint FROM task WHERE principal = ?1 AND idempotency_key = ?2";
pub(super) const OWNER_OF: &str = "SELECT principal FROM task WHERE id = ?1";
pub(super) const INSERT: &str = "INSERT INTO task (id, principal, tool, phase, epoch, worker_id, due_at,
     created_at, updated_at, effective_ttl, expires_at, started, crash_count, idempotency_key, idempotency_fingerprint, reissue_counts, origin,
     ttl, max_ttl, listed, has_cleanup, acknowledged_at, status_message, person, indexed, rerun_of, notify,
     end_audit)
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?10, ?5, 0, ?11, ?12, ?13, ?14, ?9, ?15, ?16,
     ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24) ON CONFLICT (id) DO NOTHING";
pub(super) const INSERT_REQUEST: &str = "INSERT INTO task_request (task, body) VALUES (?1, ?2)";

pub(super) fn create(batch: &mut Batch<'_>, task: &NewTask) -> Result<CreateOutcome, SqliteError> {
    if let Some(once) = &task.idempotency
        && let Some(before) = made(batch.connection, &task.principal, once)?
    {
        return Ok(before);
    }
    let bytes = budget::new_task(task);
    if let Some(over) = batch.count_in(&task.principal, bytes, (task.quota, task.max_bytes))? {
        // An existing task needs no quota.
        return Ok(made_before(batch, task)?.unwrap_or(over));
    }
    if let Some((worker, _)) = &task.worker {
        batch.file.workers.show(worker);
    }
    let (now, notify) = (batch.now(), delivery::subscriptions(&task.notify)?);
    let Some(number) = insert(batch, task, notify.as_deref(), now)? else {
        // Nearly all tasks are new, so a lookup before every insert would cost more than this
        // correction.
        batch.count_out(&task.principal)?;
        batch.count_bytes(&task.principal, -count(bytes))?;
        let taken = || {
            StoreError::Unavailable(
                "the task ID conflicts with a task that does not exist".to_owned(),
            )
        };
        return Ok(made_before(batch, task)?.ok_or_else(taken)?);
    };
    batch.count(first_phase(task, now).0, 1);
    run(batch.connection, INSERT_REQUEST, (number, task.request.get()))?;
    for (key, entry) in &task.journal.entries {
        // Entries from before the promotion have the time of the creation.
        journal::record(batch.connection, number, (key, entry), EntryTime::default())?;
    }
    journal::emit(batch.connection, number, &task.journal.segments)?;
    tag::add(batch.connection, number, &task.tags)?;
    ask(batch, &Subject { number, task: &task.id, notify: notify.as_deref() }, task)?;
    if let Some(bridge) = &task.bridge {
        bridge::insert(batch, number, &task.principal, bridge)?;
    }
    let lease = task.worker.as_ref().map(|(worker, _)| Lease {
        task: task.id.clone(),
        worker: worker.clone(),
        epoch: 1,
    });
    if lease.is_none() {
        batch.changed(number, &task.id, ChangeSource::Other);
    }
    Ok(CreateOutcome::Created { lease, at: from_column(now) })
}

/// Opens the input requests of a new task.
fn ask(batch: &Batch<'_>, subject: &Subject<'_>, task: &NewTask) -> Result<(), SqliteError> {
    let listing = Listing { is_indexed: task.indexed, person: task.person.as_deref() };
    let mut opened = 0;
    for asked in &task.input_requests {
        opened += usize::from(input_request::open(batch, subject, listing, asked)?.is_some());
    }
    input_request::update_task(batch, subject.number, opened, 0)
}

/// Returns the task that was created under an idempotency key. The key exists as long as the task.
pub(super) fn made(
    connection: &Connection,
    principal: &str,
    once: &IdempotencyKey,
) -> Result<Option<CreateOutcome>, SqliteError> {
    let found = one(connection, MADE_UNDER, (principal, &once.key), |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    Ok(found.map(|(id, digest)| match digest == once.fingerprint {
        true => CreateOutcome::Existing(TaskId::new(id)),
        false => CreateOutcome::KeyConflict,
    }))
}

/// Returns an existing task with the same ID. A caller repeats a creation whose result it did not
/// receive.
fn made_before(batch: &Batch<'_>, task: &NewTask) -> Result<Option<CreateOutcome>, SqliteError> {
    let owner = one(batch.connection, OWNER_OF, [task.id.as_str()], |row| row.get::<_, String>(0))?;
    match owner {
        None => Ok(None),
        Some(owner) if owner == task.principal => {
            Ok(Some(CreateOutcome::Existing(task.id.clone())))
        }
        Some(_) => {
            Err(StoreError::Unavailable("the task ID belongs to another principal".to_owned())
                .into())
        }
    }
}

/// Returns the phase of a new task, and when a worker must claim it.
fn first_phase(task: &NewTask, now: i64) -> (i64, Option<i64>) {
    match &task.worker {
        Some((_, lease)) => (RUNNING, Some(now + millis(*lease))),
        None if task.input_requests.is_empty() => (QUEUED, Some(now)),
        None => {
            let first_due = task.input_requests.iter().filter_map(|asked| asked.due).min();
            (PARKED, first_due.map(to_column))
        }
    }
}

/// Inserts the row and returns its number. Returns `None` if the ID exists.
fn insert(
    batch: &Batch<'_>,
    task: &NewTask,
    notify: Option<&str>,
    now: i64,
) -> Result<Option<i64>, SqliteError> {
    let (worker, (phase, due_at)) = (task.worker.as_ref(), first_phase(task, now));
    let ttl = task.ttl.map(millis);
    let reasked = match task.journal.reasked.is_empty() {
        true => None,
        false => Some(to_json(&task.journal.reasked)?),
    };
    let inserted = run(
        batch.connection,
        INSERT,
        params![
            task.id.as_str(),
            task.principal,
            task.tool,
            phase,
            worker.is_some(),
            worker.map(|(worker, _)| worker.as_str()),
            due_at,
            now,
            ttl,
            ttl.map(|ttl| now + ttl),
            task.idempotency.as_ref().map(|once| &once.key),
            task.idempotency.as_ref().map(|once| &once.fingerprint),
            reasked,
            task.origin,
            millis(task.max_ttl),
            task.listed,
            task.clean_up,
            task.bridge.is_none().then_some(now),
            task.status_message,
            task.person,
            task.indexed,
            task.rerun_of.as_ref().map(TaskId::as_str),
            notify,
            audit::end_column(task.end_audit.as_ref())?,
        ],
    )?;
    Ok((inserted > 0).then(|| batch.connection.last_insert_rowid()))
}

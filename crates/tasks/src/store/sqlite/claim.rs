//! Claims, lease renewals and releases.

use std::time::Duration;

use rusqlite::{Connection, Row};
use serde_json::json;

use super::{
    batch::Batch,
    clock::{from_column, millis, to_column},
    column::{ENDED, QUEUED, RUNNING, count, from_json, raw},
    error::SqliteError,
    journal,
    state::File,
    statement::{all, one, run},
    workers::Dead,
};
use crate::store::{
    ChangeSource, Claim, ClaimedTask, Inbox, Lease, StoreError, TaskId, WorkerId, claim::Taken,
};

// The index contains the principals, so rows of principals at their limit are not read.
pub(super) const DUE: &str =
    "SELECT number, id, principal, tool, body, phase, epoch, started, crash_count,
     cancel_requested_at IS NOT NULL, reissue_counts, progress, worker_id IS NOT NULL, outcome FROM task JOIN task_request ON task_request.task = task.number
     WHERE due_at <= ?1 AND principal NOT IN (SELECT value FROM json_each(?3)) ORDER BY due_at LIMIT ?2";
pub(super) const WANTED: &str =
    "SELECT number, id, principal, tool, body, phase, epoch, started, crash_count,
     cancel_requested_at IS NOT NULL, reissue_counts, progress, worker_id IS NOT NULL, outcome FROM task JOIN task_request ON task_request.task = task.number
     WHERE id = ?1 AND worker_id IS NULL AND phase IN (0, 2)";
pub(super) const TAKE: &str = "UPDATE task SET phase = ?6, worker_id = ?2, epoch = ?3, due_at = ?4,
     started = 1, crash_count = ?5 WHERE number = ?1";
pub(super) const POSTPONE: &str = "UPDATE task SET due_at = ?2 WHERE number = ?1";
pub(super) const RENEW: &str =
    "UPDATE task SET due_at = ?2 WHERE worker_id = ?1 RETURNING id, epoch";
pub(super) const RELEASE: &str = "UPDATE task SET phase = CASE phase WHEN 3 THEN 3 ELSE 0 END,
     worker_id = NULL, due_at = ?2 WHERE worker_id = ?1 RETURNING number, id, phase";
pub(super) const NEXT_OWNER: &str = "SELECT min(worker_id) FROM task WHERE worker_id > ?1";
pub(super) const END_LEASES: &str =
    "UPDATE task SET due_at = ?2 WHERE worker_id = ?1 AND due_at > ?2";
pub(super) const NEXT_DUE: &str = "SELECT min(due_at) FROM task WHERE due_at IS NOT NULL";
pub(super) const NEXT_DUE_EXCEPT: &str = "SELECT due_at FROM task
     WHERE due_at IS NOT NULL AND principal NOT IN (SELECT value FROM json_each(?1)) ORDER BY due_at LIMIT 1";
pub(super) const HELD: &str = "SELECT number, cancel_requested_at IS NOT NULL FROM task
     WHERE id = ?1 AND epoch = ?2 AND worker_id = ?3 AND phase = 1";

/// Returns the dead workers if a task may be claimable, because it is due or its worker is dead.
pub(super) fn due(
    connection: &Connection,
    file: &File,
    claim: &Claim,
) -> Result<Option<Vec<Dead>>, SqliteError> {
    let dead = file.workers.dead();
    let is_due = !claim.wanted.is_empty()
        || next_due(connection, file.clock.now(), &claim.full())? == Some(Duration::ZERO);
    Ok((is_due || !dead.is_empty()).then_some(dead))
}

pub(super) fn claim(
    batch: &mut Batch<'_>,
    worker: &WorkerId,
    lease: Duration,
    claim: &Claim,
    dead: &[Dead],
) -> Result<Vec<ClaimedTask>, SqliteError> {
    let (connection, now) = (batch.connection, batch.now());
    let until = now + millis(lease);
    let mut claimed = Vec::new();
    batch.file.workers.show(worker);
    for dead in dead {
        end_leases(connection, dead, now)?;
    }
    let mut found = Vec::new();
    for task in &claim.wanted {
        found.extend(one(connection, WANTED, [task.as_str()], Due::read)?);
    }
    let (mut taken, full) = (Taken::new(claim), json!(claim.full()).to_string());
    let due = all(connection, DUE, (now, count(claim.limit), full), Due::read)?;
    let is_new = |due: &Due| !found.iter().any(|wanted| wanted.number == due.number);
    let due: Vec<_> = due.into_iter().filter(is_new).collect();
    found.extend(due.into_iter().filter(|due| taken.take(&due.principal)));
    for due in found {
        let (number, id, phase) = (due.number, due.id.clone(), due.phase);
        match due.take(connection, worker, until) {
            Ok(task) => {
                // An ended task keeps its phase while its cleanup runs.
                if phase != ENDED {
                    batch.moved(phase, RUNNING);
                }
                claimed.push(task);
            }
            // The claim skips an unreadable task and continues with the others. The task becomes
            // due again later, for a worker whose version can read it.
            Err(SqliteError::Store(StoreError::Incompatible(why))) => {
                tracing::error!(
                    task_id = TaskId::new(id).prefix(),
                    error = why,
                    "task cannot be read and is skipped"
                );
                run(connection, POSTPONE, (number, until))?;
            }
            Err(problem) => return Err(problem),
        }
    }
    Ok(claimed)
}

/// Makes the tasks of a dead worker due. The worker's file stays until no task belongs to the
/// worker, because this transaction may still fail.
fn end_leases(connection: &Connection, dead: &Dead, now: i64) -> Result<(), SqliteError> {
    let mut owner = String::new();
    while let Some(next) = one(connection, NEXT_OWNER, [&owner], |row| row.get(0))?.flatten() {
        owner = next;
        if dead.is(&owner) {
            tracing::warn!(worker_id = owner, "worker is dead; its tasks are reclaimed");
            run(connection, END_LEASES, (&owner, now))?;
            return Ok(());
        }
    }
    dead.forget();
    Ok(())
}

/// Row of a due task.
struct Due {
    number: i64,
    id: String,
    principal: String,
    kind: String,
    request: String,
    phase: i64,
    epoch: i64,
    begun: bool,
    crashes: u32,
    cancel_requested: bool,
    reasked: Option<String>,
    progress: Option<String>,
    owned: bool,
    outcome: Option<String>,
}

impl Due {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            id: row.get(1)?,
            principal: row.get(2)?,
            kind: row.get(3)?,
            request: row.get(4)?,
            phase: row.get(5)?,
            epoch: row.get(6)?,
            begun: row.get(7)?,
            crashes: row.get(8)?,
            cancel_requested: row.get(9)?,
            reasked: row.get(10)?,
            progress: row.get(11)?,
            owned: row.get(12)?,
            outcome: row.get(13)?,
        })
    }

    fn take(
        self,
        connection: &Connection,
        worker: &WorkerId,
        until: i64,
    ) -> Result<ClaimedTask, SqliteError> {
        // All columns are decoded before the first write, so that an unreadable task does not
        // change.
        let journal = journal::restore(connection, self.number, self.reasked.as_deref())?;
        let request = raw("request", self.request)?;
        let progress = self.progress.map(|progress| raw("progress", progress)).transpose()?;
        let ended = self.outcome.map(|outcome| from_json("outcome", &outcome)).transpose()?;
        // A due task with a worker means that the worker did not renew its lease, which counts as a
        // crash.
        let crashes = self.crashes + u32::from(self.owned);
        let epoch = self.epoch + 1;
        let phase = if self.phase == ENDED { ENDED } else { RUNNING };
        run(connection, TAKE, (self.number, worker.as_str(), epoch, until, crashes, phase))?;
        let task = TaskId::new(self.id);
        Ok(ClaimedTask {
            lease: Lease { task, worker: worker.clone(), epoch: from_column(epoch) },
            principal: self.principal,
            tool: self.kind,
            request,
            journal,
            started: self.begun,
            crash_count: crashes,
            lost: self.owned,
            cancel_requested: self.cancel_requested,
            progress,
            ended,
        })
    }
}

pub(super) fn renew(
    batch: &Batch<'_>,
    worker: &WorkerId,
    lease: Duration,
) -> Result<Vec<Lease>, SqliteError> {
    let until = batch.now() + millis(lease);
    let held = all(batch.connection, RENEW, (worker.as_str(), until), |row| {
        let task = TaskId::new(row.get::<_, String>(0)?);
        Ok(Lease { task, worker: worker.clone(), epoch: from_column(row.get(1)?) })
    })?;
    Ok(held)
}

pub(super) fn release(batch: &mut Batch<'_>, worker: &WorkerId) -> Result<(), SqliteError> {
    let released = all(batch.connection, RELEASE, (worker.as_str(), batch.now()), |row| {
        Ok((row.get(0)?, TaskId::new(row.get::<_, String>(1)?), row.get::<_, i64>(2)?))
    })?;
    // Another process may claim the tasks immediately.
    for (number, task, phase) in &released {
        if *phase != ENDED {
            batch.moved(RUNNING, QUEUED);
        }
        batch.changed(*number, task, ChangeSource::Other);
    }
    Ok(())
}

/// Returns the time until a task of another principal than `except` is due.
pub(super) fn next_due(
    connection: &Connection,
    now: i64,
    except: &[String],
) -> Result<Option<Duration>, SqliteError> {
    let due = |row: &Row<'_>| row.get::<_, Option<i64>>(0);
    let due = match except {
        [] => one(connection, NEXT_DUE, [], due)?.flatten(),
        some => one(connection, NEXT_DUE_EXCEPT, [json!(some).to_string()], due)?.flatten(),
    };
    Ok(due.map(|due| Duration::from_millis(from_column(due - now))))
}

/// Returns the inbox of a leased task.
pub(super) fn heard(connection: &Connection, lease: &Lease) -> Result<Inbox, SqliteError> {
    let held = (lease.task.as_str(), to_column(lease.epoch), lease.worker.as_str());
    let found = one(connection, HELD, held, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let (number, cancel_requested) = found.ok_or(SqliteError::Store(StoreError::LeaseLost))?;
    Ok(Inbox { answers: journal::answers(connection, number)?, cancel_requested })
}

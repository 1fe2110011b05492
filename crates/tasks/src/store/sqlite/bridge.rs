//! The table `bridged_call`: the calls that wait for a task.

use std::{collections::HashMap, time::Duration};

use rusqlite::{Connection, Row};

use super::{
    batch::Batch,
    clock::{from_column, millis, to_column},
    column::{ENDED, count},
    end,
    error::SqliteError,
    respond::{Owned, owned},
    state::File,
    statement::{all, one, run, until},
};
use crate::store::{
    Attended, Bridge, Departure, Joined, OpenCall, TaskId, WorkerId, attendance::Attendance,
    bridge::MAX_EVICTED,
};

pub(super) const INSERT: &str = "INSERT INTO bridged_call (task, principal, scope, fingerprint,
     attended_by, attendants, joinable_at, abandon_after, pending_results)
     VALUES (?1, ?2, ?3, ?4, ?5, 1, 0, ?6, 0)";
pub(super) const EQUAL: &str = "SELECT id, attended_by, joinable_at FROM bridged_call
     JOIN task ON task.number = bridged_call.task
     WHERE bridged_call.principal = ?1 AND scope = ?2 AND fingerprint = ?3
     AND delivered_at IS NULL AND cancel_requested_at IS NULL
     AND (outcome_kind IS NULL OR outcome_kind IN (0, 1)) ORDER BY bridged_call.task";
pub(super) const FIND: &str = "SELECT number, acknowledged_at IS NOT NULL, created_at,
     delivered_at IS NOT NULL, attended_by, attendants, joinable_at, abandon_after, abandon_at,
     pending_results FROM task JOIN bridged_call ON bridged_call.task = task.number
     WHERE id = ?1 AND task.principal = ?2";
pub(super) const SAVE: &str = "UPDATE bridged_call SET attended_by = ?2, attendants = ?3,
     joinable_at = ?4, abandon_at = ?5, pending_results = ?6 WHERE task = ?1";
pub(super) const ACKNOWLEDGE: &str =
    "UPDATE task SET acknowledged_at = ?2 WHERE number = ?1 AND acknowledged_at IS NULL";
pub(super) const DELIVER: &str = "UPDATE bridged_call SET
     delivered_at = coalesce(delivered_at, ?2), attended_by = NULL, attendants = 0,
     abandon_at = NULL WHERE task = ?1";
pub(super) const LIMIT_RETENTION: &str = "UPDATE task SET purge_at = ?2,
     effective_ttl = ?2 - created_at
     WHERE number = ?1 AND phase = 3 AND (purge_at IS NULL OR purge_at > ?2)";
pub(super) const OPEN: &str = "SELECT id, tool, created_at FROM bridged_call
     JOIN task ON task.number = bridged_call.task
     WHERE bridged_call.principal = ?1 AND scope = ?2 AND delivered_at IS NULL
     ORDER BY bridged_call.task DESC LIMIT ?3";
pub(super) const DELIVERED: &str = "SELECT number FROM bridged_call
     JOIN task ON task.number = bridged_call.task
     WHERE bridged_call.principal = ?1 AND delivered_at IS NOT NULL AND phase = 3
     AND due_at IS NULL ORDER BY delivered_at LIMIT ?2";

/// Stores the call that waits for a new task.
pub(super) fn insert(
    batch: &Batch<'_>,
    task: i64,
    principal: &str,
    bridge: &Bridge,
) -> Result<(), SqliteError> {
    batch.file.workers.show(&bridge.worker);
    let Bridge { scope, fingerprint, worker, abandon_timeout } = bridge;
    let values = (task, principal, scope, fingerprint, worker.as_str(), millis(*abandon_timeout));
    run(batch.connection, INSERT, values)?;
    Ok(())
}

/// Principal, scope and fingerprint of a call.
pub(super) struct EqualCall {
    pub(super) principal: String,
    pub(super) scope: String,
    pub(super) fingerprint: String,
}

/// A run that a call can join.
pub(super) enum Joinable {
    Now(TaskId),
    After(Duration),
    Never,
}

/// Returns the oldest run that a call can join, or else when it can join one.
pub(super) fn joinable(
    connection: &Connection,
    file: &File,
    EqualCall { principal, scope, fingerprint }: &EqualCall,
) -> Result<Joinable, SqliteError> {
    let (mut found, mut first, mut gone) = (None, None, HashMap::new());
    let now = file.clock.now();
    until(connection, EQUAL, (principal, scope, fingerprint), |row| {
        let is_attended = row.get::<_, Option<String>>(1)?.is_some_and(|worker| {
            // Each worker is checked once, because one process may attend many equal runs.
            !*gone.entry(worker).or_insert_with_key(|worker| file.workers.is_gone(worker))
        });
        let after = row.get::<_, i64>(2)? - now;
        if !is_attended && after <= 0 {
            found = Some(TaskId::new(row.get::<_, String>(0)?));
        } else if !is_attended {
            first = Some(first.map_or(after, |first: i64| first.min(after)));
        }
        Ok(found.is_none())
    })?;
    Ok(match (found, first) {
        (Some(task), _) => Joinable::Now(task),
        (None, Some(after)) => Joinable::After(Duration::from_millis(from_column(after))),
        (None, None) => Joinable::Never,
    })
}

pub(super) fn join(
    batch: &Batch<'_>,
    call: &EqualCall,
    worker: &WorkerId,
) -> Result<Joined, SqliteError> {
    Ok(match joinable(batch.connection, batch.file, call)? {
        Joinable::Now(task) => {
            let attended = attend(batch, &call.principal, &task, worker)?;
            attended.map_or(Joined::Nothing, Joined::Run)
        }
        Joinable::After(wait) => Joined::Returning(wait),
        Joinable::Never => Joined::Nothing,
    })
}

pub(super) fn attend(
    batch: &Batch<'_>,
    principal: &str,
    task: &TaskId,
    worker: &WorkerId,
) -> Result<Option<Attended>, SqliteError> {
    let Some(mut call) = Call::find(batch, principal, task)? else { return Ok(None) };
    if !call.is_delivered {
        batch.file.workers.show(worker);
        call.attendance.attend(worker);
        call.save(batch)?;
    }
    let pending_results = call.attendance.pending_results;
    Ok(Some(Attended::new(task.clone(), from_column(call.created_at), pending_results)))
}

pub(super) fn leave(
    batch: &Batch<'_>,
    principal: &str,
    task: &TaskId,
    worker: &WorkerId,
    how: Departure,
) -> Result<(), SqliteError> {
    let Some(mut call) = Call::find(batch, principal, task)? else { return Ok(()) };
    let now = batch.now();
    call.attendance.leave(worker, how, call.is_acknowledged, from_column(now));
    call.save(batch)?;
    if how == Departure::PendingResult {
        run(batch.connection, ACKNOWLEDGE, (call.number, now))?;
    }
    Ok(())
}

pub(super) fn deliver(
    batch: &Batch<'_>,
    principal: &str,
    task: &TaskId,
    retention: Option<Duration>,
) -> Result<(), SqliteError> {
    let Some(Owned { number, .. }) = owned(batch, principal, task)? else { return Ok(()) };
    let now = batch.now();
    let is_bridged = run(batch.connection, DELIVER, (number, now))? > 0;
    if let Some(retention) = retention.filter(|_| is_bridged) {
        run(batch.connection, LIMIT_RETENTION, (number, now + millis(retention)))?;
    }
    Ok(())
}

pub(super) fn open_calls(
    connection: &Connection,
    principal: &str,
    scope: &str,
    limit: usize,
) -> Result<Vec<OpenCall>, SqliteError> {
    let open = all(connection, OPEN, (principal, scope, count(limit)), |row| {
        let task = TaskId::new(row.get::<_, String>(0)?);
        Ok(OpenCall::new(task, row.get::<_, String>(1)?, from_column(row.get(2)?)))
    })?;
    Ok(open)
}

/// Deletes delivered tasks until `bytes` are free. Returns the freed bytes.
pub(super) fn evict(
    batch: &mut Batch<'_>,
    principal: &str,
    bytes: u64,
) -> Result<u64, SqliteError> {
    let limit = count(MAX_EVICTED);
    let delivered = all(batch.connection, DELIVERED, (principal, limit), |row| row.get(0))?;
    let mut freed = 0;
    for number in delivered {
        if freed >= to_column(bytes) {
            break;
        }
        freed += end::purge(batch, number)?;
        batch.count(ENDED, -1);
    }
    Ok(from_column(freed))
}

/// Row of a bridged call, with columns of its task.
struct Call {
    number: i64,
    is_acknowledged: bool,
    created_at: i64,
    is_delivered: bool,
    attendance: Attendance,
}

impl Call {
    fn find(
        batch: &Batch<'_>,
        principal: &str,
        task: &TaskId,
    ) -> Result<Option<Self>, SqliteError> {
        Ok(one(batch.connection, FIND, (task.as_str(), principal), Self::read)?)
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            is_acknowledged: row.get(1)?,
            created_at: row.get(2)?,
            is_delivered: row.get(3)?,
            attendance: Attendance {
                attended_by: row.get::<_, Option<String>>(4)?.map(WorkerId::new),
                attendants: row.get(5)?,
                joinable_at: from_column(row.get(6)?),
                abandon_after: from_column(row.get(7)?),
                abandon_at: row.get::<_, Option<i64>>(8)?.map(from_column),
                pending_results: row.get(9)?,
            },
        })
    }

    fn save(&self, batch: &Batch<'_>) -> Result<(), SqliteError> {
        let Attendance {
            attended_by, attendants, joinable_at, abandon_at, pending_results, ..
        } = &self.attendance;
        let values = (
            self.number,
            attended_by.as_ref().map(WorkerId::as_str),
            attendants,
            to_column(*joinable_at),
            abandon_at.map(to_column),
            pending_results,
        );
        run(batch.connection, SAVE, values)?;
        Ok(())
    }
}

//! [`OperatorStore`] of the SQLite store.

use std::sync::Arc;

use outlive_wire::RawJson;
use rusqlite::{Connection, Row};

use super::{
    batch::Batch,
    clock::{from_column, to_column},
    column::{ENDED, KEPT, QUEUED, audience, count, from_json, phase, phase_column, raw},
    end,
    error::SqliteError,
    journal, key_value,
    read::{Seen, seen},
    statement::{all, in_one_piece, one, run},
    store::SqliteStore,
};
use crate::store::{
    ChangeSource, InputRequestRecord, InputRequestState, ListCursor, OperatorStore, OutcomeKind,
    PurgeOutcome, RetryOutcome, StoreError, StoreFuture, TaskDetail, TaskFilter, TaskId,
    TaskSummary, UnixMillis, WorkerId,
};

macro_rules! overseen {
    ($which:literal) => {
        seen!(
            ", principal, worker_id, epoch, started, crash_count, due_at, CASE phase WHEN 4 THEN quarantine_outcome END
             FROM task ",
            $which
        )
    };
}

// These two statements scan all tasks. An index would slow down every creation, and operators use
// these statements rarely.
const TASKS: &str = overseen!(
    "WHERE (?1 IS NULL OR phase = ?1) AND (?2 IS NULL OR tool = ?2)
     AND (?3 IS NULL OR principal = ?3) AND created_at < ?4 AND (created_at, id) < (?5, ?6)
     AND (?8 IS NULL OR outcome_kind = ?8) ORDER BY created_at DESC, id DESC LIMIT ?7"
);
const ENDED_BEFORE: &str = "SELECT number, principal, id FROM task
     WHERE phase = 3 AND due_at IS NULL AND updated_at < ?1 LIMIT ?2";

pub(super) const ONE: &str = overseen!("WHERE id = ?1");
pub(super) const REQUEST: &str = "SELECT number, body FROM task
     JOIN task_request ON task_request.task = task.number WHERE id = ?1";
pub(super) const QUESTIONS: &str =
    "SELECT journal_key, wire_key, body, due_at, state, audience FROM input_request
     WHERE task = ?1 ORDER BY ordinal";
// The TTL starts again. Without a TTL all sums are NULL.
pub(super) const RETRY: &str =
    "UPDATE task SET phase = 0, quarantine_outcome = NULL, due_at = ?2, crash_count = 0,
     status_message = NULL, max_ttl = max_ttl + ?2 - created_at,
     effective_ttl = CASE WHEN open > 0 THEN max(ttl, max_ttl + ?2 - created_at)
         ELSE ttl + ?2 - created_at END,
     expires_at = CASE WHEN open > 0 THEN max(ttl + created_at, max_ttl + ?2)
         ELSE ttl + ?2 END,
     updated_at = max(?2, updated_at + 1) WHERE number = ?1";
pub(super) const PHASE: &str =
    "SELECT number, principal, phase, due_at IS NOT NULL FROM task WHERE id = ?1";

impl OperatorStore for SqliteStore {
    fn tasks<'a>(
        &'a self,
        filter: &'a TaskFilter,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskSummary>> {
        let (filter, after) = (filter.clone(), after.cloned());
        let look = move |connection: &_| tasks(connection, &filter, after.as_ref(), limit);
        Box::pin(self.readers.read(&self.file, look))
    }

    fn inspect<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<TaskDetail>> {
        let task = task.clone();
        let look =
            move |connection: &_| in_one_piece(connection, |connection| inspect(connection, &task));
        Box::pin(self.readers.read(&self.file, look))
    }

    fn retry<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<RetryOutcome>> {
        let task = task.clone();
        Box::pin(self.writer.write(move |batch| retry(batch, &task)))
    }

    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> StoreFuture<'a, Option<PurgeOutcome>> {
        let task = task.clone();
        Box::pin(self.writer.write(move |batch| purge(batch, &task, force)))
    }

    fn purge_ended(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(String, TaskId)>> {
        Box::pin(self.writer.write(move |batch| purge_ended(batch, before, limit)))
    }

    fn key_values<'a>(
        &'a self,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, RawJson)>> {
        let (prefix, file) = (prefix.to_owned(), Arc::clone(&self.file));
        let look = move |connection: &_| {
            key_value::starting_with(connection, &prefix, file.clock.now(), limit)
        };
        Box::pin(self.readers.read(&self.file, look))
    }
}

fn tasks(
    connection: &Connection,
    filter: &TaskFilter,
    after: Option<&ListCursor>,
    limit: usize,
) -> Result<Vec<TaskSummary>, SqliteError> {
    let (created, id) =
        after.map_or((i64::MAX, ""), |after| (to_column(after.created), after.id.as_str()));
    let values = (
        filter.phase.map(phase_column),
        &filter.tool,
        &filter.principal,
        filter.before.map_or(i64::MAX, to_column),
        created,
        id,
        count(limit),
        filter.outcome.map(OutcomeKind::column),
    );
    let rows = all(connection, TASKS, values, Watched::read)?;
    rows.into_iter().map(Watched::overseen).collect()
}

/// Must run inside a transaction, so that all statements read the same state.
fn inspect(connection: &Connection, task: &TaskId) -> Result<Option<TaskDetail>, SqliteError> {
    let Some(watched) = one(connection, ONE, [task.as_str()], Watched::read)? else {
        return Ok(None);
    };
    let request = one(connection, REQUEST, [task.as_str()], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    let missing = || {
        StoreError::Incompatible("a task has no request; restore the file from a backup".to_owned())
    };
    let (number, request) = request.ok_or_else(missing)?;
    let rows = all(connection, QUESTIONS, [number], |row| {
        Ok((
            (row.get(0)?, row.get(1)?),
            (row.get::<_, String>(2)?, row.get::<_, Option<i64>>(3)?),
            (row.get::<_, i64>(4)?, row.get::<_, i16>(5)?),
        ))
    })?;
    let requests = rows.into_iter().map(|((key, name), (body, due), (state, to))| {
        Ok(InputRequestRecord {
            key,
            name,
            request: from_json("input_request", &body)?,
            audience: audience(to)?,
            due: due.map(from_column),
            state: match state {
                0 => InputRequestState::Open,
                1 => InputRequestState::Answered,
                _ => InputRequestState::Withdrawn,
            },
        })
    });
    let segments = one(connection, journal::LAST, [number], |row| row.get(0))?;
    Ok(Some(TaskDetail {
        input_requests: requests.collect::<Result<_, SqliteError>>()?,
        entries: journal::entries(connection, number)?,
        segments: from_column(segments.unwrap_or_default()),
        request: raw("request", request)?,
        task: watched.overseen()?,
    }))
}

fn retry(batch: &mut Batch<'_>, task: &TaskId) -> Result<Option<RetryOutcome>, SqliteError> {
    let Some(TaskRow { number, principal, phase: column, .. }) = find(batch, task)? else {
        return Ok(None);
    };
    if column != KEPT {
        return Ok(Some(RetryOutcome::NotQuarantined(phase(column)?)));
    }
    run(batch.connection, RETRY, (number, batch.now()))?;
    batch.moved(KEPT, QUEUED);
    batch.changed(number, task, ChangeSource::Other);
    Ok(Some(RetryOutcome::Queued(principal)))
}

fn purge(
    batch: &mut Batch<'_>,
    task: &TaskId,
    force: bool,
) -> Result<Option<PurgeOutcome>, SqliteError> {
    let Some(TaskRow { number, principal, phase: column, is_due }) = find(batch, task)? else {
        return Ok(None);
    };
    let was = phase(column)?;
    match (column == ENDED, is_due) {
        (false, _) if !force => return Ok(Some(PurgeOutcome::NotEnded(was))),
        (true, true) if !force => return Ok(Some(PurgeOutcome::CleanupPending)),
        (false, _) => batch.count_out(&principal)?,
        (true, _) => {}
    }
    // The change log identifies tasks by row number, and the row is gone. Other processes therefore
    // find this change only by polling.
    end::purge(batch, number)?;
    batch.count(column, -1);
    batch.changed(number, task, ChangeSource::Other);
    Ok(Some(PurgeOutcome::Purged(principal, was)))
}

fn purge_ended(
    batch: &mut Batch<'_>,
    before: UnixMillis,
    limit: usize,
) -> Result<Vec<(String, TaskId)>, SqliteError> {
    let old = all(batch.connection, ENDED_BEFORE, (to_column(before), count(limit)), |row| {
        let task = (row.get(1)?, TaskId::new(row.get::<_, String>(2)?));
        Ok((row.get::<_, i64>(0)?, task))
    })?;
    for (number, _) in &old {
        end::purge(batch, *number)?;
    }
    batch.count(ENDED, -count(old.len()));
    Ok(old.into_iter().map(|(_, task)| task).collect())
}

/// Columns of a task that an operator changes.
struct TaskRow {
    number: i64,
    principal: String,
    phase: i64,
    is_due: bool,
}

fn find(batch: &Batch<'_>, task: &TaskId) -> Result<Option<TaskRow>, SqliteError> {
    let found = one(batch.connection, PHASE, [task.as_str()], |row| {
        Ok(TaskRow {
            number: row.get(0)?,
            principal: row.get(1)?,
            phase: row.get(2)?,
            is_due: row.get(3)?,
        })
    })?;
    Ok(found)
}

/// Row of a task with the columns for operators.
struct Watched {
    seen: Seen,
    principal: String,
    owner: Option<String>,
    epoch: i64,
    begun: bool,
    crashes: u32,
    due: Option<i64>,
    kept: Option<String>,
}

impl Watched {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seen: Seen::read(row)?,
            principal: row.get(13)?,
            owner: row.get(14)?,
            epoch: row.get(15)?,
            begun: row.get(16)?,
            crashes: row.get(17)?,
            due: row.get(18)?,
            kept: row.get(19)?,
        })
    }

    fn overseen(self) -> Result<TaskSummary, SqliteError> {
        Ok(TaskSummary {
            view: self.seen.view()?,
            principal: self.principal,
            owner: self.owner.map(WorkerId::new),
            epoch: from_column(self.epoch),
            started: self.begun,
            crash_count: self.crashes,
            due_at: self.due.map(from_column),
            kept: self.kept.map(|kept| from_json("outcome", &kept)).transpose()?,
        })
    }
}

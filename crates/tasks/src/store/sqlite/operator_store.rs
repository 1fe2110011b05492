//! [`OperatorStore`] of the SQLite store.

use std::sync::Arc;

use outlive_wire::RawJson;
use rusqlite::Connection;

use super::{
    batch::Batch,
    clock::{from_column, to_column},
    column::{
        ENDED, KEPT, QUEUED, audience, count, from_json, phase, phase_column, raw, request_state,
    },
    delivery::Subject,
    end,
    error::SqliteError,
    input_request, journal, key_value,
    statement::{all, in_one_piece, one, run},
    store::SqliteStore,
    summary::{Watched, overseen},
    tag,
};
use crate::store::{
    ChangeSource, InputRequestRecord, ListCursor, OperatorStore, OutcomeKind, PurgeOutcome,
    RetryOutcome, StoreError, StoreFuture, TaskDetail, TaskFilter, TaskId, TaskSummary, UnixMillis,
};

// These two statements scan all tasks. An index would slow down every creation, and operators use
// these statements rarely.
const TASKS: &str = overseen!(
    "",
    "WHERE (?1 IS NULL OR phase = ?1) AND (?2 IS NULL OR tool = ?2)
     AND (?3 IS NULL OR principal = ?3) AND created_at < ?4 AND (created_at, id) < (?5, ?6)
     AND (?8 IS NULL OR outcome_kind = ?8) ORDER BY created_at DESC, id DESC LIMIT ?7"
);
const ENDED_BEFORE: &str = "SELECT number, principal, id FROM task
     WHERE phase = 3 AND due_at IS NULL AND updated_at < ?1 LIMIT ?2";

pub(super) const ONE: &str = overseen!("", "WHERE id = ?1");
pub(super) const REQUEST: &str = "SELECT number, body, person, rerun_of, tags FROM task
     JOIN task_request ON task_request.task = task.number WHERE id = ?1";
pub(super) const QUESTIONS: &str =
    "SELECT journal_key, wire_key, body, people, audience, due_at, state, opened_at, settled_at
     FROM input_request WHERE task = ?1 ORDER BY ordinal";
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
        let rerun_of = row.get::<_, Option<String>>(3)?.map(TaskId::new);
        let texts = (row.get::<_, String>(1)?, row.get::<_, Option<String>>(4)?);
        Ok((row.get::<_, i64>(0)?, row.get(2)?, rerun_of, texts))
    })?;
    let missing = || {
        StoreError::Incompatible("a task has no request; restore the file from a backup".to_owned())
    };
    let (number, person, rerun_of, (request, tags)) = request.ok_or_else(missing)?;
    let segments = one(connection, journal::LAST, [number], |row| row.get(0))?;
    Ok(Some(TaskDetail {
        input_requests: input_requests(connection, number)?,
        entries: journal::entries(connection, number)?,
        segments: from_column(segments.unwrap_or_default()),
        request: raw("request", request)?,
        task: watched.overseen()?,
        person,
        rerun_of,
        tags: tag::read(tags.as_deref())?,
    }))
}

fn input_requests(
    connection: &Connection,
    task: i64,
) -> Result<Vec<InputRequestRecord>, SqliteError> {
    let rows = all(connection, QUESTIONS, [task], |row| {
        let keys = (row.get(0)?, row.get(1)?);
        let texts = (row.get::<_, String>(2)?, row.get::<_, Option<String>>(3)?);
        let times = (row.get::<_, Option<i64>>(5)?, row.get(7)?, row.get::<_, Option<i64>>(8)?);
        Ok((keys, texts, (row.get(4)?, row.get(6)?), times))
    })?;
    let records = rows.into_iter().map(|((key, name), (body, people), (to, state), times)| {
        let (due, opened_at, settled_at) = times;
        Ok(InputRequestRecord {
            key,
            name,
            request: from_json("input_request", &body)?,
            audience: audience(to, people.as_deref())?,
            due: due.map(from_column),
            state: request_state(state),
            opened_at: from_column(opened_at),
            settled_at: settled_at.map(from_column),
        })
    });
    records.collect()
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
        (false, _) => {
            batch.count_out(&principal)?;
            // The open requests leave the inboxes. Nothing is delivered, because the task is gone.
            let subject = Subject { number, task, notify: None };
            input_request::withdraw_all(batch, &subject)?;
        }
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

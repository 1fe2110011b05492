//! [`OperatorStore`] of the PostgreSQL store.

use std::collections::BTreeMap;

use outlive_wire::RawJson;
use tokio_postgres::Row;

use super::{
    clock::{from_column, to_column},
    column::{audience, count, from_json, from_text, get, name, owned, phase, phase_column, raw},
    error::PostgresError,
    key_value,
    queue::Order,
    read::{seen, seen_in},
    statement::{Call, CallResult, values},
    store::PostgresStore,
};
use crate::store::{
    ChangeSource, InputRequestRecord, InputRequestState, ListCursor, OperatorStore, OutcomeKind,
    PurgeOutcome, RetryOutcome, StoreFuture, TaskDetail, TaskFilter, TaskId, TaskSummary,
    UnixMillis, WorkerId,
};

pub(super) const TASKS: &str = seen!(
    ", principal, worker_id, epoch, started, crash_count, due_at, CASE phase WHEN 4 THEN quarantine_outcome END",
    "JOIN operator_list_tasks($1, $2, $3, $4, $5, $6, $7, $8) AS f ON f.found = t.id
     ORDER BY created_at DESC, id DESC"
);
pub(super) const INSPECT: &str = seen!(
    ", principal, worker_id, epoch, started, crash_count, due_at, CASE phase WHEN 4 THEN quarantine_outcome END,
     request, e.keys, e.bodies, (SELECT count(*) FROM segment WHERE task = t.number),
     a.keys, a.names, a.bodies, a.dues, a.states, a.audiences",
    "CROSS JOIN LATERAL (SELECT array_agg(key) AS keys, array_agg(body) AS bodies
         FROM journal_entry WHERE task = t.number) AS e
     CROSS JOIN LATERAL (SELECT array_agg(journal_key ORDER BY ordinal) AS keys,
         array_agg(wire_key ORDER BY ordinal) AS names, array_agg(body ORDER BY ordinal) AS bodies,
         array_agg(due_at ORDER BY ordinal) AS dues, array_agg(state ORDER BY ordinal) AS states,
         array_agg(audience ORDER BY ordinal) AS audiences
         FROM input_request WHERE task = t.number) AS a
     WHERE id = $1"
);
pub(super) const RETRY: &str = "SELECT * FROM retry_task($1, $2)";
pub(super) const PURGE: &str = "SELECT * FROM purge_task($1, $2)";
pub(super) const PURGE_ENDED: &str = "SELECT * FROM purge_ended($1, $2)";

impl OperatorStore for PostgresStore {
    fn tasks<'a>(
        &'a self,
        filter: &'a TaskFilter,
        after: Option<&'a ListCursor>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<TaskSummary>> {
        let (created, id) =
            after.map_or((i64::MAX, ""), |after| (to_column(after.created), after.id.as_str()));
        let values = values![
            filter.phase.map(phase_column),
            filter.tool.as_deref().map(owned),
            filter.principal.as_deref().map(owned),
            filter.before.map_or(i64::MAX, to_column),
            created,
            owned(id),
            count(limit),
            filter.outcome.map(OutcomeKind::column),
        ];
        let read = |rows: Vec<Row>| rows.iter().map(overseen).collect();
        Box::pin(self.readers.read(&self.shared, Call::new(TASKS, values), read))
    }

    fn inspect<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<TaskDetail>> {
        let call = Call::new(INSPECT, values![owned(task.as_str())]);
        let read = |rows: Vec<Row>| rows.first().map(inspected).transpose();
        Box::pin(self.readers.read(&self.shared, call, read))
    }

    fn retry<'a>(&'a self, task: &'a TaskId) -> StoreFuture<'a, Option<RetryOutcome>> {
        let call = Call::new(RETRY, values![owned(task.as_str()), self.shared.shift.get()]);
        let retried = task.clone();
        let read = move |rows: Vec<Row>| read_retried(&rows, &retried);
        Box::pin(self.writers.write(Order::on(task), call, read))
    }

    fn purge<'a>(&'a self, task: &'a TaskId, force: bool) -> StoreFuture<'a, Option<PurgeOutcome>> {
        let call = Call::new(PURGE, values![owned(task.as_str()), force]);
        let purged = task.clone();
        let read = move |rows: Vec<Row>| read_purged(&rows, &purged);
        Box::pin(self.writers.write(Order::on(task), call, read))
    }

    fn purge_ended(
        &self,
        before: UnixMillis,
        limit: usize,
    ) -> StoreFuture<'_, Vec<(String, TaskId)>> {
        let call = Call::new(PURGE_ENDED, values![to_column(before), count(limit)]);
        let read = |rows: Vec<Row>| {
            let gone = rows.iter().map(|row| Ok((name(row, 1)?, TaskId::new(name(row, 0)?))));
            Ok(CallResult::new(gone.collect::<Result<_, PostgresError>>()?))
        };
        Box::pin(self.writers.write(Order::Alone, call, read))
    }

    fn key_values<'a>(
        &'a self,
        prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<(String, RawJson)>> {
        let call = key_value::starting_with(&self.shared, prefix, limit);
        Box::pin(self.readers.read(&self.shared, call, |rows| key_value::read_entries(&rows)))
    }
}

fn overseen(row: &Row) -> Result<TaskSummary, PostgresError> {
    let kept = get::<Option<&str>>(row, 22)?.map(|kept| from_json("outcome", kept));
    Ok(TaskSummary {
        view: seen_in(row)?,
        principal: name(row, 16)?,
        owner: get::<Option<String>>(row, 17)?.map(|owner| WorkerId::new(from_text(owner))),
        epoch: from_column(get(row, 18)?),
        started: get(row, 19)?,
        crash_count: u32::try_from(get::<i32>(row, 20)?).unwrap_or_default(),
        due_at: get::<Option<i64>>(row, 21)?.map(from_column),
        kept: kept.transpose()?,
    })
}

fn inspected(row: &Row) -> Result<TaskDetail, PostgresError> {
    let texts = |column| {
        Ok::<_, PostgresError>(get::<Option<Vec<String>>>(row, column)?.unwrap_or_default())
    };
    let entries = texts(24)?.into_iter().zip(texts(25)?);
    let entries = entries.map(|(key, body)| Ok((from_text(key), from_json("journal", &body)?)));
    Ok(TaskDetail {
        task: overseen(row)?,
        request: raw("request", get(row, 23)?)?,
        entries: entries.collect::<Result<BTreeMap<_, _>, PostgresError>>()?,
        segments: from_column(get(row, 26)?),
        input_requests: requests(row, texts(27)?, texts(28)?)?,
    })
}

fn requests(
    row: &Row,
    keys: Vec<String>,
    names: Vec<String>,
) -> Result<Vec<InputRequestRecord>, PostgresError> {
    let bodies: Vec<Option<&str>> = get::<Option<_>>(row, 29)?.unwrap_or_default();
    let dues: Vec<Option<i64>> = get::<Option<_>>(row, 30)?.unwrap_or_default();
    let states: Vec<i16> = get::<Option<_>>(row, 31)?.unwrap_or_default();
    let audiences: Vec<i16> = get::<Option<_>>(row, 32)?.unwrap_or_default();
    let states = states.into_iter().zip(audiences);
    let rows = keys.into_iter().zip(names).zip(bodies.into_iter().zip(dues)).zip(states);
    rows.map(|(((key, name), (body, due)), (state, to))| {
        Ok(InputRequestRecord {
            key: from_text(key),
            name: from_text(name),
            request: body.map(|body| from_json("input_request", body)).transpose()?,
            audience: audience(to)?,
            due: due.map(from_column),
            state: match state {
                0 => InputRequestState::Open,
                1 => InputRequestState::Answered,
                _ => InputRequestState::Withdrawn,
            },
        })
    })
    .collect()
}

fn read_retried(
    rows: &[Row],
    task: &TaskId,
) -> Result<CallResult<Option<RetryOutcome>>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(CallResult::new(None)) };
    Ok(match phase(get(row, 0)?)? {
        crate::store::Phase::Quarantined => CallResult::changing(
            Some(RetryOutcome::Queued(name(row, 1)?)),
            task,
            ChangeSource::Other,
        ),
        other => CallResult::new(Some(RetryOutcome::NotQuarantined(other))),
    })
}

fn read_purged(
    rows: &[Row],
    task: &TaskId,
) -> Result<CallResult<Option<PurgeOutcome>>, PostgresError> {
    let Some(row) = rows.first() else { return Ok(CallResult::new(None)) };
    let (was, owed, gone) = (phase(get(row, 0)?)?, get::<bool>(row, 2)?, get::<bool>(row, 3)?);
    Ok(match (gone, owed) {
        (true, _) => CallResult::changing(
            Some(PurgeOutcome::Purged(name(row, 1)?, was)),
            task,
            ChangeSource::Other,
        ),
        (false, true) => CallResult::new(Some(PurgeOutcome::CleanupPending)),
        (false, false) => CallResult::new(Some(PurgeOutcome::NotEnded(was))),
    })
}

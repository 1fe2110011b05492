//! [`OperatorStore`] of the PostgreSQL store.

use std::collections::BTreeMap;

use outlive_wire::RawJson;
use tokio_postgres::Row;

use super::{
    clock::{from_column, to_column},
    column::{
        count, from_json, from_text, get, list, name, optional_name, owned, phase, phase_column,
        raw,
    },
    error::PostgresError,
    input_request::{audience, state},
    key_value,
    queue::Order,
    read::seen,
    statement::{Call, CallResult, values},
    store::PostgresStore,
    summary::{overseen, summary},
};
use crate::store::{
    ChangeSource, InputRequestRecord, ListCursor, OperatorStore, OutcomeKind, PurgeOutcome,
    RetryOutcome, StoreFuture, TaskDetail, TaskFilter, TaskId, TaskSummary, UnixMillis,
};

pub(super) const TASKS: &str = seen!(
    summary!(),
    "JOIN operator_list_tasks($1, $2, $3, $4, $5, $6, $7, $8) AS f ON f.found = t.id
     ORDER BY created_at DESC, id DESC"
);
pub(super) const INSPECT: &str = seen!(
    concat!(
        summary!(),
        ", request, e.keys, e.bodies, (SELECT count(*) FROM segment WHERE task = t.number),
         a.keys, a.names, a.bodies, a.dues, a.states, a.audiences, a.addressees, a.opened,
         a.settled, person, rerun_of,
         ARRAY(SELECT g.tag FROM tag g WHERE g.task = t.number ORDER BY g.tag)"
    ),
    "CROSS JOIN LATERAL (SELECT array_agg(key) AS keys, array_agg(body) AS bodies
         FROM journal_entry WHERE task = t.number) AS e
     CROSS JOIN LATERAL (SELECT array_agg(journal_key ORDER BY ordinal) AS keys,
         array_agg(wire_key ORDER BY ordinal) AS names, array_agg(body ORDER BY ordinal) AS bodies,
         array_agg(due_at ORDER BY ordinal) AS dues, array_agg(state ORDER BY ordinal) AS states,
         array_agg(audience ORDER BY ordinal) AS audiences,
         array_agg(addressees ORDER BY ordinal) AS addressees,
         array_agg(opened_at ORDER BY ordinal) AS opened,
         array_agg(settled_at ORDER BY ordinal) AS settled
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

fn inspected(row: &Row) -> Result<TaskDetail, PostgresError> {
    let texts = |column| list::<String>(row, column);
    let entries = texts(24)?.into_iter().zip(texts(25)?);
    let entries = entries.map(|(key, body)| Ok((from_text(key), from_json("journal", &body)?)));
    Ok(TaskDetail {
        task: overseen(row)?,
        request: raw("request", get(row, 23)?)?,
        entries: entries.collect::<Result<BTreeMap<_, _>, PostgresError>>()?,
        segments: from_column(get(row, 26)?),
        input_requests: requests(row, texts(27)?, texts(28)?)?,
        person: optional_name(row, 36)?,
        rerun_of: optional_name(row, 37)?.map(TaskId::new),
        tags: texts(38)?.into_iter().map(from_text).collect(),
    })
}

fn requests(
    row: &Row,
    keys: Vec<String>,
    names: Vec<String>,
) -> Result<Vec<InputRequestRecord>, PostgresError> {
    let bodies: Vec<Option<&str>> = list(row, 29)?;
    let dues: Vec<Option<i64>> = list(row, 30)?;
    let states: Vec<i16> = list(row, 31)?;
    let audiences: Vec<i16> = list(row, 32)?;
    let addressees: Vec<Option<&str>> = list(row, 33)?;
    let opened: Vec<i64> = list(row, 34)?;
    let settled: Vec<Option<i64>> = list(row, 35)?;
    let times = dues.into_iter().zip(opened.into_iter().zip(settled));
    let audiences = audiences.into_iter().zip(addressees);
    let rows = keys.into_iter().zip(names).zip(bodies).zip(states).zip(audiences).zip(times);
    rows.map(|(((((key, name), body), of), (to, people)), (due, (opened, settled)))| {
        Ok(InputRequestRecord {
            key: from_text(key),
            name: from_text(name),
            request: body.map(|body| from_json("input_request", body)).transpose()?,
            audience: audience(to, people)?,
            due: due.map(from_column),
            state: state(of),
            opened_at: from_column(opened),
            settled_at: settled.map(from_column),
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

//! Input responses from a client or another system, and the inbox of a worker.

use outlive_wire::RawJson;
use tokio_postgres::Row;

use super::{
    clock::to_column,
    column::{from_json, get, name, owned, to_json},
    error::PostgresError,
    state::Shared,
    statement::{Call, CallResult, values},
};
use crate::{
    JournalEntry,
    store::{ChangeSource, Inbox, InputSource, Lease, StoreError, TaskId},
};

pub(super) const ANSWER: &str = "SELECT respond_task($1, $2, $3, $4, $5, $6, $7, $8)";
// Returns one row with a NULL response if the task has none, and no row if the lease is lost.
pub(super) const HEARD: &str = "SELECT t.cancel_requested_at IS NOT NULL, e.key, e.body FROM task t
     LEFT JOIN journal_entry e ON e.task = t.number AND e.is_input
     WHERE t.id = $1 AND t.epoch = $2 AND t.worker_id = $3 AND t.phase = 1 ORDER BY e.key";

pub(super) fn answer(
    shared: &Shared,
    principal: &str,
    task: &TaskId,
    from: InputSource,
    answers: &[(String, RawJson)],
    max_bytes: u64,
) -> Result<Call, StoreError> {
    let bodies = answers.iter().map(|(_, answer)| to_json(&JournalEntry::Answer(answer.clone())));
    Ok(Call::new(
        ANSWER,
        values![
            owned(principal),
            owned(task.as_str()),
            from == InputSource::External,
            answers.iter().map(|(name, _)| owned(name)).collect::<Vec<_>>(),
            bodies.collect::<Result<Vec<_>, _>>()?,
            to_column(max_bytes),
            shared.shift.get(),
            from.max_audience(),
        ],
    ))
}

pub(super) fn read(
    rows: &[Row],
    task: &TaskId,
) -> Result<CallResult<Option<usize>>, PostgresError> {
    let taken: Option<i64> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    if taken == Some(-1) {
        return Err(StoreError::BytesExceeded.into());
    }
    let taken = taken.map(|taken| usize::try_from(taken).unwrap_or_default());
    Ok(match taken {
        Some(1..) => CallResult::changing(taken, task, ChangeSource::Other),
        _ => CallResult::new(taken),
    })
}

pub(super) fn heard(lease: &Lease) -> Call {
    let (task, worker) = (owned(lease.task.as_str()), owned(lease.worker.as_str()));
    Call::new(HEARD, values![task, to_column(lease.epoch), worker])
}

pub(super) fn read_heard(rows: &[Row]) -> Result<Inbox, PostgresError> {
    let first = rows.first().ok_or(StoreError::LeaseLost)?;
    let mut heard = Inbox { answers: Vec::new(), cancel_requested: get(first, 0)? };
    for row in rows {
        let Some(body) = get::<Option<&str>>(row, 2)? else { continue };
        if let JournalEntry::Answer(answer) = from_json("journal", body)? {
            heard.answers.push((name(row, 1)?, answer));
        }
    }
    Ok(heard)
}

//! What a worker writes.

use std::collections::HashSet;

use tokio_postgres::Row;

use super::{
    Shared,
    call::{Call, Said, values},
    clock::{millis, to_column},
    column::{array, count, get, owned, to_json},
    problem::Problem,
};
use crate::{
    Entry,
    store::{By, Changes, Lease, StoreError, Then},
};

pub(super) const WRITE: &str =
    "SELECT write_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)";

pub(super) fn write(
    shared: &Shared,
    lease: &Lease,
    mut changes: Changes,
    then: &Then,
) -> Result<Call, StoreError> {
    // The first of a name counts, and the database wants each once.
    let mut names = HashSet::new();
    changes.asked.retain(|asked| names.insert(asked.name.clone()));
    let (entries, segments, asked) = (&changes.entries, &changes.segments, &changes.asked);
    let bodies = entries.iter().map(|(_, entry)| to_json(entry)).collect::<Result<Vec<_>, _>>()?;
    let questions = asked.iter().map(|asked| asked.request.as_ref().map(to_json).transpose());
    let questions = questions.collect::<Result<Vec<_>, _>>()?;
    let (what, due, seen, outcome, retention) = match then {
        Then::GoOn => (0, None, None, None, None),
        Then::Park { due, seen } => (1, due.map(to_column), Some(count(*seen)), None, None),
        Then::End { outcome, retention } => {
            let what = if outcome.is_unfinished() { 3 } else { 2 };
            (what, None, None, Some(to_json(outcome)?), Some(millis(*retention)))
        }
    };
    let names = |names: &[String]| array(names.iter().map(|name| owned(name)).collect());
    Ok(Call::new(
        WRITE,
        values![
            owned(lease.task.as_str()),
            owned(lease.worker.as_str()),
            to_column(lease.epoch),
            changes.message.as_deref().map(owned),
            changes.progress.as_ref().map(|progress| progress.get().to_owned()),
            names(&changes.forgotten),
            array(entries.iter().map(|(key, _)| owned(key)).collect()),
            array(entries.iter().map(|(_, entry)| matches!(entry, Entry::Answer(_))).collect()),
            array(bodies),
            array(segments.iter().map(|segment| owned(&segment.scope)).collect()),
            array(segments.iter().map(|segment| i64::from(segment.ordinal)).collect()),
            array(segments.iter().map(|segment| segment.block.get().to_owned()).collect()),
            array(asked.iter().map(|asked| owned(&asked.name)).collect()),
            array(asked.iter().map(|asked| owned(&asked.key)).collect()),
            array(asked.iter().map(|asked| asked.due.map(to_column)).collect()),
            array(questions),
            names(&changes.withdrawn),
            what,
            due,
            seen,
            outcome,
            retention,
            shared.shift.get(),
        ],
    ))
}

/// Whoever has lost the task has written nothing.
pub(super) fn read(rows: &[Row], lease: &Lease) -> Result<Said<()>, Problem> {
    match rows.first().map(|row| get::<bool>(row, 0)).transpose()? {
        Some(true) => Ok(Said::changing((), &lease.task, By::Worker)),
        _ => Err(StoreError::Lost.into()),
    }
}

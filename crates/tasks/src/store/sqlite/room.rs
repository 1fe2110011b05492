//! Whether a principal has room for what is written. Looked at before anything is: what is refused
//! leaves nothing behind.

use outlive_wire::RawJson;

use super::{batch::Batch, clock::to_column, column::count, error::Problem, journal, questions};
use crate::{
    JournalEntry,
    store::{Changes, Charge, InputSource, Transition, budget},
};

/// Whether the principal of a task has room for a write.
pub(super) fn has_room(
    batch: &mut Batch<'_>,
    (principal, task): (&str, i64),
    changes: &Changes,
    then: &Transition,
) -> Result<bool, Problem> {
    let Some(Charge { max_bytes, .. }) = &changes.charge else { return Ok(true) };
    let most = count(budget::at_most(changes, then));
    if most == 0 {
        return Ok(true);
    }
    let left = to_column(*max_bytes) - batch.stored_bytes(principal)?;
    // Only who has hardly any room left is looked at closely.
    if most <= left {
        return Ok(true);
    }
    let growth = growth(batch, task, changes, then)?;
    Ok(growth <= 0 || growth <= left)
}

/// How many bytes more a write stores.
fn growth(
    batch: &Batch<'_>,
    task: i64,
    changes: &Changes,
    then: &Transition,
) -> Result<i64, Problem> {
    let connection = batch.connection;
    let mut bytes = 0;
    for key in &changes.invalidated {
        bytes -= journal::bytes_of(connection, task, key)?.unwrap_or_default();
    }
    for (key, entry) in &changes.entries {
        let is_there = !changes.invalidated.contains(key)
            && journal::bytes_of(connection, task, key)?.is_some();
        bytes += if is_there { 0 } else { count(budget::journal_entry(key, entry)) };
    }
    for segment in &changes.segments {
        let is_there = journal::has_segment(connection, task, segment)?;
        bytes += if is_there { 0 } else { count(budget::segment(segment)) };
    }
    for asked in &changes.input_requests {
        let before = questions::bytes_of(connection, task, &asked.name)?;
        bytes += (count(budget::question(asked)) - before.unwrap_or_default()).max(0);
    }
    if let Transition::End { outcome, .. } = then {
        bytes += count(budget::outcome_need(budget::outcome_bytes(outcome)));
    }
    Ok(bytes)
}

/// Whether the principal of a task has room for what it is answered.
pub(super) fn has_room_for_answers(
    batch: &mut Batch<'_>,
    (principal, task): (&str, i64),
    from: InputSource,
    answers: &[(String, RawJson)],
    max_bytes: u64,
) -> Result<bool, Problem> {
    // Keys are short, and bounded by the answers that are there then.
    let most: usize = answers.iter().map(|(_, answer)| answer.get().len() + ANSWER_BYTES).sum();
    let left = to_column(max_bytes) - batch.stored_bytes(principal)?;
    if count(most) <= left {
        return Ok(true);
    }
    let mut growth = 0;
    for (name, answer) in answers {
        if let Some(key) = questions::open_key(batch.connection, task, name, from)? {
            growth += budget::journal_entry(&key, &JournalEntry::Answer(answer.clone()));
        }
    }
    Ok(growth == 0 || count(growth) <= left)
}

/// What an answer counts beside itself, as far as it is counted without looking for its key.
const ANSWER_BYTES: usize = 256;

//! Checks whether a write fits into the byte limit of its principal. The check precedes the write,
//! so that a rejected write leaves no partial changes.

use outlive_wire::RawJson;

use super::{
    batch::Batch, clock::to_column, column::count, error::SqliteError, input_request, journal, tag,
};
use crate::{
    JournalEntry,
    store::{Changes, Charge, InputSource, RecordedEntry, Transition, budget},
};

/// Returns whether a write fits into the byte limit of the task's principal.
pub(super) fn fits(
    batch: &mut Batch<'_>,
    (principal, task): (&str, i64),
    changes: &Changes,
    then: &Transition,
) -> Result<bool, SqliteError> {
    let Some(Charge { max_bytes, .. }) = &changes.charge else { return Ok(true) };
    let most = count(budget::at_most(changes, then));
    if most == 0 {
        return Ok(true);
    }
    let left = to_column(*max_bytes) - batch.stored_bytes(principal)?;
    // The exact growth is read from the file only if the upper bound does not fit.
    if most <= left {
        return Ok(true);
    }
    let growth = growth(batch, task, changes, then)?;
    Ok(growth <= 0 || growth <= left)
}

/// Returns the number of bytes that a write adds.
fn growth(
    batch: &Batch<'_>,
    task: i64,
    changes: &Changes,
    then: &Transition,
) -> Result<i64, SqliteError> {
    let connection = batch.connection;
    let mut bytes = 0;
    for key in &changes.invalidated {
        bytes -= journal::bytes_of(connection, task, key)?.unwrap_or_default();
    }
    for RecordedEntry { key, entry, .. } in &changes.entries {
        let is_there = !changes.invalidated.contains(key)
            && journal::bytes_of(connection, task, key)?.is_some();
        bytes += if is_there { 0 } else { count(budget::journal_entry(key, entry)) };
    }
    for segment in &changes.segments {
        let is_there = journal::has_segment(connection, task, segment)?;
        bytes += if is_there { 0 } else { count(budget::segment(segment)) };
    }
    for asked in &changes.input_requests {
        let before = input_request::bytes_of(connection, task, &asked.name)?;
        bytes += (count(budget::input_request(asked)) - before.unwrap_or_default()).max(0);
    }
    bytes += count(budget::result_parts(&changes.result_parts));
    bytes += count(tag::growth(connection, task, &changes.tags)?);
    if let Transition::End { outcome, .. } = then {
        bytes += count(budget::outcome_need(budget::outcome_bytes(outcome)));
    }
    Ok(bytes)
}

/// Returns whether input responses fit into the byte limit of the task's principal.
pub(super) fn responses_fit(
    batch: &mut Batch<'_>,
    (principal, task): (&str, i64),
    from: InputSource,
    answers: &[(String, RawJson)],
    max_bytes: u64,
) -> Result<bool, SqliteError> {
    // An upper bound, because keys are short. The exact keys are read only if this bound does not
    // fit.
    let most: usize = answers.iter().map(|(_, answer)| answer.get().len() + ANSWER_BYTES).sum();
    let left = to_column(max_bytes) - batch.stored_bytes(principal)?;
    if count(most) <= left {
        return Ok(true);
    }
    let mut growth = 0;
    for (name, answer) in answers {
        if let Some(key) = input_request::open_key(batch.connection, task, name, from)? {
            growth += budget::journal_entry(&key, &JournalEntry::Answer(answer.clone()));
        }
    }
    Ok(growth == 0 || count(growth) <= left)
}

/// Bytes that the upper bound adds to each response for its key.
const ANSWER_BYTES: usize = 256;

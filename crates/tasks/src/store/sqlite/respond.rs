//! Input responses from a client or another system.

use outlive_wire::RawJson;

use super::{
    batch::Batch,
    byte_limit,
    column::{ENDED, PARKED, QUEUED, count},
    error::SqliteError,
    input_request, journal,
    statement::{one, run},
};
use crate::{
    JournalEntry,
    store::{ChangeSource, InputSource, StoreError, TaskId},
};

pub(super) const OWNED: &str = "SELECT number, phase FROM task WHERE id = ?1 AND principal = ?2";
// A response queues a parked task, because no worker has it.
pub(super) const ANSWERED: &str = "UPDATE task SET updated_at = max(?2, updated_at + 1),
     due_at = CASE phase WHEN 2 THEN ?2 ELSE due_at END, phase = CASE phase WHEN 2 THEN 0 ELSE phase END
     WHERE number = ?1";

pub(super) fn answer(
    batch: &mut Batch<'_>,
    principal: &str,
    task: &TaskId,
    from: InputSource,
    answers: &[(String, RawJson)],
    max_bytes: u64,
) -> Result<Option<usize>, SqliteError> {
    let Some((number, phase)) = owned(batch, principal, task)? else { return Ok(None) };
    if phase != ENDED
        && !byte_limit::responses_fit(batch, (principal, number), from, answers, max_bytes)?
    {
        return Err(StoreError::BytesExceeded.into());
    }
    let (mut taken, mut bytes) = (0, 0);
    if phase != ENDED {
        for (name, answer) in answers {
            let key = input_request::resolve(batch.connection, number, name, from)?;
            let Some(key) = key else { continue };
            let answer = JournalEntry::Answer(answer.clone());
            bytes += journal::record(batch.connection, number, &key, &answer)?;
            taken += 1;
        }
    }
    if taken > 0 {
        batch.count_bytes(principal, count(bytes))?;
        input_request::update_task(batch, number, 0, taken)?;
        run(batch.connection, ANSWERED, (number, batch.now()))?;
        if phase == PARKED {
            batch.moved(PARKED, QUEUED);
        }
        batch.changed(number, task, ChangeSource::Other);
    }
    Ok(Some(taken))
}

/// Returns the row number and the phase of a task of this principal.
pub(super) fn owned(
    batch: &Batch<'_>,
    principal: &str,
    task: &TaskId,
) -> Result<Option<(i64, i64)>, SqliteError> {
    let found = one(batch.connection, OWNED, (task.as_str(), principal), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(found)
}

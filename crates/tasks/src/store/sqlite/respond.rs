//! Input responses from a client or another system.

use outlive_wire::RawJson;

use super::{
    batch::Batch,
    byte_limit,
    column::{ENDED, PARKED, QUEUED, count},
    delivery::Subject,
    error::SqliteError,
    input_request,
    journal::{self, EntryTime},
    statement::{one, run},
};
use crate::{
    JournalEntry,
    store::{ChangeSource, InputSource, StoreError, TaskId},
};

pub(super) const OWNED: &str =
    "SELECT number, phase, indexed, notify, end_audit FROM task WHERE id = ?1 AND principal = ?2";
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
    let Some(owned) = owned(batch, principal, task)? else { return Ok(None) };
    let (number, phase, subject) = (owned.number, owned.phase, owned.subject(task));
    if phase != ENDED
        && !byte_limit::responses_fit(batch, (principal, number), from, answers, max_bytes)?
    {
        return Err(StoreError::BytesExceeded.into());
    }
    let (mut taken, mut bytes) = (0, 0);
    if phase != ENDED {
        for (name, answer) in answers {
            let key = input_request::resolve(batch, &subject, name, from)?;
            let Some(key) = key else { continue };
            bytes += record(batch, number, owned.is_indexed, (&key, answer))?;
            taken += 1;
        }
    }
    if taken > 0 {
        batch.count_bytes(principal, count(bytes))?;
        wake(batch, number, phase, taken)?;
        batch.changed(number, task, ChangeSource::Other);
    }
    Ok(Some(taken))
}

/// Records a response in the journal. Returns its bytes.
pub(super) fn record(
    batch: &Batch<'_>,
    number: i64,
    is_indexed: bool,
    (key, response): (&str, &RawJson),
) -> Result<usize, SqliteError> {
    let response = JournalEntry::Answer(response.clone());
    let recorded_at = is_indexed.then(|| batch.now());
    let time = EntryTime { recorded_at, duration: None };
    journal::record(batch.connection, number, (key, &response), time)
}

/// Updates a task in this phase after `taken` of its requests got a response. Queues a parked task.
pub(super) fn wake(
    batch: &mut Batch<'_>,
    number: i64,
    phase: i64,
    taken: usize,
) -> Result<(), SqliteError> {
    input_request::update_task(batch, number, 0, taken)?;
    run(batch.connection, ANSWERED, (number, batch.now()))?;
    if phase == PARKED {
        batch.moved(PARKED, QUEUED);
    }
    Ok(())
}

/// A task of a principal.
pub(super) struct Owned {
    pub(super) number: i64,
    pub(super) phase: i64,
    pub(super) is_indexed: bool,
    /// Subscriptions, as JSON.
    pub(super) notify: Option<String>,
    /// Audit event of the end, as JSON.
    pub(super) end_audit: Option<String>,
}

impl Owned {
    pub(super) fn subject<'a>(&'a self, task: &'a TaskId) -> Subject<'a> {
        Subject { number: self.number, task, notify: self.notify.as_deref() }
    }
}

/// Returns the columns of a task of this principal.
pub(super) fn owned(
    batch: &Batch<'_>,
    principal: &str,
    task: &TaskId,
) -> Result<Option<Owned>, SqliteError> {
    let found = one(batch.connection, OWNED, (task.as_str(), principal), |row| {
        Ok(Owned {
            number: row.get(0)?,
            phase: row.get(1)?,
            is_indexed: row.get(2)?,
            notify: row.get(3)?,
            end_audit: row.get(4)?,
        })
    })?;
    Ok(found)
}

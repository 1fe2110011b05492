//! Claims, lease renewals and releases.

use std::{collections::BTreeMap, time::Duration};

use tokio_postgres::Row;

use super::{
    clock::{from_column, millis, to_column},
    column::{count, from_json, from_text, get, list, name, owned, progress, raw},
    error::PostgresError,
    state::Shared,
    statement::{Call, CallResult, values},
};
use crate::{
    JournalSnapshot, SegmentRecord,
    store::{ChangeSource, Claim, ClaimedTask, Lease, TaskId, WorkerId},
};

pub(super) const CLAIM: &str = "SELECT * FROM claim_tasks($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
pub(super) const RENEW: &str = "SELECT * FROM renew_tasks($1, $2, $3, $4)";
pub(super) const RELEASE: &str = "SELECT release_tasks($1, $2)";
pub(super) const POSTPONE: &str = "UPDATE task SET phase = CASE phase WHEN 3 THEN 3 ELSE 0 END,
     worker_id = NULL, worker_lock = NULL WHERE id = $1 AND epoch = $2 AND worker_id IS NOT NULL";
pub(super) const NEXT_DUE: &str = "SELECT next_due($1, $2)";

pub(super) fn claim(shared: &Shared, worker: &WorkerId, lease: Duration, claim: &Claim) -> Call {
    let (lock, shift) = (shared.lock(), shared.shift.get());
    let (worker, lease, limit) = (owned(worker.as_str()), millis(lease), count(claim.limit));
    let wanted: Vec<_> = claim.wanted.iter().map(|task| owned(task.as_str())).collect();
    let full: Vec<_> = claim.full().iter().map(|principal| owned(principal)).collect();
    let principals: Vec<_> = claim.running.keys().map(|principal| owned(principal)).collect();
    let rooms = claim.running.keys().map(|principal| count(claim.room_of(principal)));
    let rooms: Vec<i64> = rooms.collect();
    let room = count(claim.max_per_principal);
    Call::new(
        CLAIM,
        values![worker, lock, lease, limit, wanted, full, principals, rooms, room, shift],
    )
}

/// Result of a claim.
#[derive(Default)]
pub(super) struct Brought {
    pub(super) claimed: Vec<ClaimedTask>,
    /// Tasks that this version cannot read. Another version may be able to run them.
    pub(super) unreadable: Vec<(Lease, PostgresError)>,
}

pub(super) fn read_claimed(
    rows: &[Row],
    worker: &WorkerId,
) -> Result<CallResult<Brought>, PostgresError> {
    let mut brought = Brought::default();
    for row in rows {
        let task = TaskId::new(name(row, 0)?);
        let lease = Lease { task, worker: worker.clone(), epoch: from_column(get(row, 1)?) };
        match claimed(row, lease.clone()) {
            Ok(claimed) => brought.claimed.push(claimed),
            Err(problem) => brought.unreadable.push((lease, problem)),
        }
    }
    Ok(CallResult::new(brought))
}

fn claimed(row: &Row, lease: Lease) -> Result<ClaimedTask, PostgresError> {
    Ok(ClaimedTask {
        lease,
        principal: name(row, 2)?,
        tool: name(row, 3)?,
        request: raw("request", get(row, 4)?)?,
        started: get(row, 5)?,
        crash_count: u32::try_from(get::<i32>(row, 6)?).unwrap_or_default(),
        lost: get(row, 19)?,
        cancel_requested: get(row, 7)?,
        journal: restored(row)?,
        progress: progress(get(row, 17)?)?,
        ended: get::<Option<&str>>(row, 18)?
            .map(|outcome| from_json("outcome", outcome))
            .transpose()?,
    })
}

/// Returns the journal that a run replays.
fn restored(row: &Row) -> Result<JournalSnapshot, PostgresError> {
    let mut reasked: BTreeMap<String, u32> = match get::<Option<&str>>(row, 8)? {
        Some(json) => from_json("input_request", json)?,
        None => BTreeMap::new(),
    };
    for (key, again) in names(row, 15)?.into_iter().zip(list::<i64>(row, 16)?) {
        *reasked.entry(key).or_default() += u32::try_from(again).unwrap_or(u32::MAX);
    }
    let mut entries = BTreeMap::new();
    for (key, body) in names(row, 9)?.into_iter().zip(list::<&str>(row, 10)?) {
        entries.insert(key, from_json("journal", body)?);
    }
    let mut segments = Vec::new();
    let places = names(row, 11)?.into_iter().zip(list::<i64>(row, 12)?);
    for ((scope, ordinal), block) in places.zip(list::<String>(row, 13)?) {
        let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
        segments.push(SegmentRecord { scope, ordinal, block: raw("segments", block)? });
    }
    Ok(JournalSnapshot { entries, segments, input_requests: names(row, 14)?, reasked })
}

fn names(row: &Row, column: usize) -> Result<Vec<String>, PostgresError> {
    Ok(list::<String>(row, column)?.into_iter().map(from_text).collect())
}

/// Releases a task that cannot be read. The task is due again when its lease would have expired.
pub(super) fn postpone(lease: &Lease) -> Call {
    Call::new(POSTPONE, values![owned(lease.task.as_str()), to_column(lease.epoch)])
}

pub(super) fn renew(shared: &Shared, worker: &WorkerId, lease: Duration) -> Call {
    let (lock, shift) = (shared.lock(), shared.shift.get());
    Call::new(RENEW, values![owned(worker.as_str()), lock, millis(lease), shift])
}

pub(super) fn read_renewed(
    rows: &[Row],
    worker: &WorkerId,
) -> Result<CallResult<Vec<Lease>>, PostgresError> {
    let held = rows.iter().map(|row| {
        let (task, epoch) = (TaskId::new(name(row, 0)?), from_column(get(row, 1)?));
        Ok(Lease { task, worker: worker.clone(), epoch })
    });
    Ok(CallResult::new(held.collect::<Result<_, PostgresError>>()?))
}

pub(super) fn release(shared: &Shared, worker: &WorkerId) -> Call {
    Call::new(RELEASE, values![owned(worker.as_str()), shared.shift.get()])
}

/// Reads the released tasks. Another process may claim them immediately.
pub(super) fn read_released(rows: &[Row]) -> Result<CallResult<()>, PostgresError> {
    let released = rows.iter().map(|row| Ok((TaskId::new(name(row, 0)?), ChangeSource::Other)));
    Ok(CallResult { answer: (), changed: released.collect::<Result<_, PostgresError>>()? })
}

/// Returns the statement for the time until a task of another principal than `except` is due.
pub(super) fn next_due(shared: &Shared, except: &[String]) -> Call {
    let except: Vec<_> = except.iter().map(|principal| owned(principal)).collect();
    Call::new(NEXT_DUE, values![except, shared.shift.get()])
}

pub(super) fn read_due(rows: &[Row]) -> Result<Option<Duration>, PostgresError> {
    let due: Option<i64> = rows.first().map(|row| get(row, 0)).transpose()?.flatten();
    Ok(due.map(|due| Duration::from_millis(from_column(due))))
}

//! The table `phase_count`: number of tasks in each phase. The counts are maintained incrementally,
//! because counting a million rows would block other operations.

use std::time::Duration;

use rusqlite::Connection;

use super::{
    clock::from_column,
    column::{ENDED, KEPT, PARKED, QUEUED, RUNNING},
    error::SqliteError,
    statement::{one, run},
};
use crate::store::StoreStats;

pub(super) const COUNT: &str = "UPDATE phase_count SET queued = queued + ?1, running = running + ?2,
     parked = parked + ?3, ended = ended + ?4, quarantined = quarantined + ?5, bytes = max(bytes + ?6, 0)
     WHERE number = 1";
pub(super) const COUNTED: &str =
    "SELECT queued, running, parked, ended, (SELECT min(due_at) FROM task WHERE due_at IS NOT NULL),
     quarantined, bytes FROM phase_count WHERE number = 1";
pub(super) const READY: &str = "SELECT number FROM phase_count WHERE number = 1";

/// Changes of the counts in one transaction. Written once for all its operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves([i64; 6]);

/// Index of the bytes in [`Moves`].
const BYTES: usize = 5;

impl Moves {
    /// Adds to the number of tasks in a phase. `tasks` may be negative.
    pub(super) fn count(&mut self, phase: i64, tasks: i64) {
        // An unknown phase is not counted.
        if let Some(count) =
            usize::try_from(phase).ok().and_then(|phase| self.0[..BYTES].get_mut(phase))
        {
            *count += tasks;
        }
    }

    /// Adds to the stored bytes. `bytes` may be negative.
    pub(super) fn count_bytes(&mut self, bytes: i64) {
        self.0[BYTES] += bytes;
    }

    pub(super) fn write(self, connection: &Connection) -> Result<(), SqliteError> {
        if self != Self::default() {
            let of = |phase: i64| self.0[phase as usize];
            let bytes = self.0[BYTES];
            let moves = (of(QUEUED), of(RUNNING), of(PARKED), of(ENDED), of(KEPT), bytes);
            run(connection, COUNT, moves)?;
        }
        Ok(())
    }
}

/// Reads one row, which always exists.
pub(super) fn ready(connection: &Connection) -> Result<(), SqliteError> {
    one(connection, READY, [], |_| Ok(()))?;
    Ok(())
}

pub(super) fn census(connection: &Connection, now: i64) -> Result<StoreStats, SqliteError> {
    let census = one(connection, COUNTED, [], |row| {
        let due: Option<i64> = row.get(4)?;
        let waiting = due.filter(|due| *due <= now);
        Ok(StoreStats {
            queued: from_column(row.get(0)?),
            running: from_column(row.get(1)?),
            parked: from_column(row.get(2)?),
            ended: from_column(row.get(3)?),
            quarantined: from_column(row.get(5)?),
            bytes: from_column(row.get(6)?),
            oldest_due: waiting.map(|due| Duration::from_millis(from_column(now - due))),
        })
    })?;
    Ok(census.unwrap_or_default())
}

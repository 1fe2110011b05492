//! The table `metric`: counts of ended tasks.
//!
//! Each worker adds to separate rows, so that a row tells which worker counted. Old minutes are
//! merged into the hour of all workers.

use std::collections::BTreeMap;

use rusqlite::{Connection, Row};

use super::{
    batch::Batch,
    clock::{from_column, millis, to_column},
    column::count,
    error::SqliteError,
    statement::{all, one, run},
};
use crate::store::{HOURS, MINUTES, MetricRow, UnixMillis, WorkerId};

pub(super) const COUNTS: &str = "SELECT counts FROM metric
     WHERE is_hour = ?1 AND starts_at = ?2 AND tool = ?3 AND worker_id = ?4";
pub(super) const SAVE: &str =
    "INSERT INTO metric (is_hour, starts_at, tool, worker_id, counts) VALUES (?1, ?2, ?3, ?4, ?5)
     ON CONFLICT DO UPDATE SET counts = excluded.counts";
pub(super) const SINCE: &str = "SELECT starts_at, tool, worker_id, counts FROM metric
     WHERE is_hour IN (0, 1) AND starts_at >= ?1";
pub(super) const OLD: &str = "SELECT starts_at, tool, worker_id, counts FROM metric
     WHERE is_hour = 0 AND starts_at < ?1 ORDER BY starts_at, tool, worker_id LIMIT ?2";
pub(super) const MERGED: &str = "DELETE FROM metric
     WHERE is_hour = 0 AND (starts_at, tool, worker_id) <= (?1, ?2, ?3)";
pub(super) const SWEEP: &str = "DELETE FROM metric WHERE is_hour = 1 AND starts_at < ?1";

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// Maximum number of minutes that one write merges.
const MERGE: usize = 1_000;

/// Adds counts to minutes, and merges old minutes. Each minute gets old once, so nearly all writes
/// find nothing to merge.
pub(super) fn add(batch: &Batch<'_>, rows: &[MetricRow]) -> Result<(), SqliteError> {
    for row in rows {
        let at = row.at - row.at % MINUTE;
        let worker = row.worker.as_ref().map_or("", WorkerId::as_str);
        add_to(batch.connection, (false, at, worker), row)?;
    }
    merge(batch)
}

/// Returns the sums of all workers since a time, oldest first.
pub(super) fn since(
    connection: &Connection,
    since: UnixMillis,
) -> Result<Vec<MetricRow>, SqliteError> {
    let rows = all(connection, SINCE, [to_column(since)], read)?;
    let mut sums: BTreeMap<(UnixMillis, String), MetricRow> = BTreeMap::new();
    for row in rows {
        add_to_sum(&mut sums, row.at, &row);
    }
    Ok(sums.into_values().collect())
}

/// Merges old minutes into their hours, and deletes old hours.
fn merge(batch: &Batch<'_>) -> Result<(), SqliteError> {
    let (connection, now) = (batch.connection, batch.now());
    let until = now - millis(MINUTES);
    let minutes = all(connection, OLD, (until, count(MERGE)), read)?;
    let Some(last) = minutes.last() else { return Ok(()) };
    let mut hours = BTreeMap::new();
    for minute in &minutes {
        add_to_sum(&mut hours, minute.at - minute.at % HOUR, minute);
    }
    for hour in hours.values() {
        add_to(connection, (true, hour.at, ""), hour)?;
    }
    let worker = last.worker.as_ref().map_or("", WorkerId::as_str);
    run(connection, MERGED, (to_column(last.at), &last.tool, worker))?;
    run(connection, SWEEP, [now - millis(HOURS)])?;
    Ok(())
}

fn add_to_sum(
    sums: &mut BTreeMap<(UnixMillis, String), MetricRow>,
    at: UnixMillis,
    row: &MetricRow,
) {
    let sum = sums.entry((at, row.tool.clone()));
    sum.or_insert_with(|| MetricRow::new(at, row.tool.as_str())).add(row);
}

/// Adds counts to a stored row.
fn add_to(
    connection: &Connection,
    (is_hour, at, worker): (bool, UnixMillis, &str),
    row: &MetricRow,
) -> Result<(), SqliteError> {
    let place = (is_hour, to_column(at), &row.tool, worker);
    let mut sum = MetricRow::new(at, row.tool.as_str());
    if let Some(counts) = one(connection, COUNTS, place, |row| row.get::<_, Vec<u8>>(0))? {
        from_blob(&mut sum, &counts);
    }
    sum.add(row);
    let (is_hour, at, tool, worker) = place;
    run(connection, SAVE, (is_hour, at, tool, worker, to_blob(&sum)))?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<MetricRow> {
    let worker = row.get::<_, String>(2)?;
    let worker = (!worker.is_empty()).then(|| WorkerId::new(worker));
    let mut read =
        MetricRow::new(from_column(row.get(0)?), row.get::<_, String>(1)?).worker(worker);
    from_blob(&mut read, row.get_ref(3)?.as_blob()?);
    Ok(read)
}

/// Converts the counts to their column: 32 bits each, the ended tasks first. An overview reads many
/// rows, and text would take longer to parse.
fn to_blob(MetricRow { ended, wait, run, .. }: &MetricRow) -> Vec<u8> {
    let counts = ended.iter().chain(wait).chain(run);
    counts.flat_map(|count| u32::try_from(*count).unwrap_or(u32::MAX).to_le_bytes()).collect()
}

/// Reads the counts of a column.
fn from_blob(MetricRow { ended, wait, run, .. }: &mut MetricRow, blob: &[u8]) {
    let counts = ended.iter_mut().chain(wait).chain(run);
    for (count, bytes) in counts.zip(blob.as_chunks::<4>().0) {
        *count = u64::from(u32::from_le_bytes(*bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::{from_blob, to_blob};
    use crate::store::MetricRow;

    #[test]
    fn counts_are_readable_after_their_conversion() {
        let mut row = MetricRow::new(60_000, "deploy");
        row.ended = [1, 2, 3, 1 << 20];
        (row.wait[0], row.wait[15], row.run[7]) = (4, 5, 6);
        let mut read = MetricRow::new(60_000, "deploy");
        from_blob(&mut read, &to_blob(&row));
        assert_eq!(read, row);
    }
}

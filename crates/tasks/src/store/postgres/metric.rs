//! The table `metric`: counts of ended tasks by minute or hour.

use std::collections::BTreeMap;

use tokio_postgres::Row;

use super::{
    clock::{from_column, millis, to_column},
    column::{get, name, text, unreadable},
    error::PostgresError,
    state::Shared,
    statement::{Call, values},
};
use crate::store::{BUCKETS, HOURS, MINUTES, MetricRow, UnixMillis};

pub(super) const ADD: &str = "SELECT add_metrics($1, $2, $3, $4, $5, $6, $7, $8)";
pub(super) const SINCE: &str = "SELECT at, tool, counts FROM metric
     WHERE is_hour = ANY ('{false, true}') AND at >= $1";

/// Number of counts of a row: ended tasks by outcome, then the histograms of wait and run.
const WIDTH: usize = 4 + 2 * (BUCKETS.len() + 1);

const MINUTE: u64 = 60_000;

/// Returns the statement that adds rows to their minutes.
pub(super) fn add(shared: &Shared, rows: &[MetricRow]) -> Call {
    // The statement requires one row per minute, tool and worker.
    let mut sums: BTreeMap<_, MetricRow> = BTreeMap::new();
    for row in rows {
        let at = row.at - row.at % MINUTE;
        let worker = row.worker.as_ref().map_or("", |worker| worker.as_str());
        let sum = sums.entry((at, row.tool.as_str(), worker));
        sum.or_insert_with(|| MetricRow::new(at, row.tool.as_str())).add(row);
    }
    Call::new(
        ADD,
        values![
            sums.keys().map(|(at, ..)| to_column(*at)).collect::<Vec<_>>(),
            sums.keys().map(|(_, tool, _)| text(tool).into_owned()).collect::<Vec<_>>(),
            sums.keys().map(|(.., worker)| text(worker).into_owned()).collect::<Vec<_>>(),
            sums.values().flat_map(counts).map(to_column).collect::<Vec<_>>(),
            WIDTH as i32,
            millis(MINUTES),
            millis(HOURS),
            shared.shift.get(),
        ],
    )
}

/// Returns the counts of a row, in the order of the column.
fn counts(row: &MetricRow) -> impl Iterator<Item = u64> {
    row.ended.into_iter().chain(row.wait).chain(row.run)
}

pub(super) fn since(since: UnixMillis) -> Call {
    Call::new(SINCE, values![to_column(since)])
}

/// Reads the sums of all workers, by time and tool.
pub(super) fn read(rows: &[Row]) -> Result<Vec<MetricRow>, PostgresError> {
    let mut sums: BTreeMap<_, MetricRow> = BTreeMap::new();
    for row in rows {
        let (at, tool) = (from_column(get(row, 0)?), name(row, 1)?);
        let row = counted(at, &tool, &get::<Vec<i64>>(row, 2)?)?;
        sums.entry((at, tool)).or_insert_with_key(|(at, tool)| MetricRow::new(*at, tool)).add(&row);
    }
    Ok(sums.into_values().collect())
}

fn counted(at: UnixMillis, tool: &str, counts: &[i64]) -> Result<MetricRow, PostgresError> {
    if counts.len() != WIDTH {
        return Err(unreadable("metrics", &format!("{} counts", counts.len())));
    }
    let mut row = MetricRow::new(at, tool);
    let places = row.ended.iter_mut().chain(&mut row.wait).chain(&mut row.run);
    for (place, count) in places.zip(counts) {
        *place = from_column(*count);
    }
    Ok(row)
}

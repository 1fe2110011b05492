//! Metrics of ended tasks in memory.

use std::collections::BTreeMap;

use crate::{
    store::{HOURS, MINUTES, MetricRow, UnixMillis},
    time::millis,
};

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

/// Sums of all workers, by minute or hour and tool.
#[derive(Default)]
pub(super) struct Metrics {
    rows: BTreeMap<(UnixMillis, String), MetricRow>,
    /// Minute in which old minutes were merged last.
    merged_at: UnixMillis,
}

impl Metrics {
    pub(super) fn add(&mut self, rows: &[MetricRow], now: UnixMillis) {
        for row in rows {
            self.add_at(row.at - row.at % MINUTE, row);
        }
        let minute = now - now % MINUTE;
        if minute > self.merged_at {
            self.merged_at = minute;
            self.merge(now);
        }
    }

    /// Returns the sums since a time, oldest first.
    pub(super) fn rows_since(&self, since: UnixMillis) -> Vec<MetricRow> {
        self.rows.range((since, String::new())..).map(|(_, row)| row.clone()).collect()
    }

    /// Merges old minutes into their hours, and deletes old hours.
    fn merge(&mut self, now: UnixMillis) {
        let kept_since = now.saturating_sub(millis(HOURS));
        self.rows.retain(|(at, _), _| *at >= kept_since);
        let old = (now.saturating_sub(millis(MINUTES)), String::new());
        let minutes = self.rows.range(..old).filter(|((at, _), _)| at % HOUR != 0);
        let minutes: Vec<_> = minutes.map(|(key, _)| key.clone()).collect();
        for key in minutes {
            if let Some(row) = self.rows.remove(&key) {
                self.add_at(row.at - row.at % HOUR, &row);
            }
        }
    }

    fn add_at(&mut self, at: UnixMillis, row: &MetricRow) {
        let sum = self.rows.entry((at, row.tool.clone()));
        sum.or_insert_with(|| MetricRow::new(at, row.tool.as_str())).add(row);
    }
}

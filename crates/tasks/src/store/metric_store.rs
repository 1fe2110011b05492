//! Counts of ended tasks by minute, and the replicas that wrote them, for the overview.

use std::time::Duration;

use super::{
    id::{UnixMillis, WorkerId},
    traits::StoreFuture,
};
use crate::setters::setters;

/// Upper bounds of the histograms, in milliseconds. The last bucket has no bound.
pub const BUCKETS: [u64; 15] = [
    10,
    30,
    100,
    300,
    1_000,
    3_000,
    10_000,
    30_000,
    60_000,
    300_000,
    900_000,
    3_600_000,
    14_400_000,
    86_400_000,
    604_800_000,
];

/// Time for which minutes are stored. Older minutes are added to their hour.
pub const MINUTES: Duration = Duration::from_secs(48 * 3_600);

/// Time for which hours are stored.
pub const HOURS: Duration = Duration::from_secs(90 * 24 * 3_600);

/// Metrics of ended tasks.
pub trait MetricStore: Send + Sync + 'static {
    /// Adds counts to minutes. Also merges old minutes into hours and deletes old hours, at most
    /// once per minute.
    fn add_metrics<'a>(&'a self, rows: &'a [MetricRow]) -> StoreFuture<'a, ()>;

    /// Returns the sums of all replicas since a time, by minute or hour and tool, oldest first.
    fn metrics(&self, since: UnixMillis) -> StoreFuture<'_, Vec<MetricRow>>;
}

/// Counts of one minute and tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricRow {
    /// Start of the minute or hour.
    pub at: UnixMillis,
    /// Tool.
    pub tool: String,
    /// Worker that counted; empty in a sum.
    pub worker: Option<WorkerId>,
    /// Number of tasks that ended completed, failed, cancelled and expired.
    pub ended: [u64; 4],
    /// Number of tasks by the time from creation to their first start. See [`BUCKETS`].
    pub wait: [u64; BUCKETS.len() + 1],
    /// Number of tasks by the time from their first start to their end. See [`BUCKETS`].
    pub run: [u64; BUCKETS.len() + 1],
}

impl MetricRow {
    /// Creates a row without counts.
    pub fn new(at: UnixMillis, tool: impl Into<String>) -> Self {
        let (wait, run) = ([0; BUCKETS.len() + 1], [0; BUCKETS.len() + 1]);
        Self { at, tool: tool.into(), worker: None, ended: [0; 4], wait, run }
    }

    /// Returns the bucket of a duration.
    pub fn bucket(duration: Duration) -> usize {
        let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        BUCKETS.iter().position(|bound| millis <= *bound).unwrap_or(BUCKETS.len())
    }

    /// Adds the counts of another row.
    pub fn add(&mut self, other: &Self) {
        let pairs = [(&mut self.ended[..], &other.ended[..])]
            .into_iter()
            .chain([(&mut self.wait[..], &other.wait[..]), (&mut self.run[..], &other.run[..])]);
        for (sum, counts) in pairs {
            for (sum, count) in sum.iter_mut().zip(counts) {
                *sum += count;
            }
        }
    }
}

setters!(MetricRow { worker: Option<WorkerId> });

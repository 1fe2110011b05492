//! Checks of metrics.

use std::time::Duration;

use super::bench::{ContractBench, promises, worker};
use crate::{
    store::{HOURS, MINUTES, MetricRow, UnixMillis},
    time::millis,
};

promises![
    metrics_of_workers_are_summed,
    metrics_are_returned_since_time_oldest_first,
    old_minutes_are_merged_into_hours,
    old_hours_are_deleted,
];

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;

impl ContractBench {
    async fn add(&self, rows: &[MetricRow]) {
        self.for_people().add_metrics(rows).await.expect("operation succeeds");
    }

    async fn metrics(&self, since: UnixMillis) -> Vec<MetricRow> {
        self.for_people().metrics(since).await.expect("read succeeds")
    }
}

/// Returns a row with different numbers in all counts.
fn row(at: UnixMillis, tool: &str, by: &str, times: u64) -> MetricRow {
    let mut row = MetricRow::new(at, tool).worker(Some(worker(by)));
    row.ended = [1, 2, 3, 4].map(|count| count * times);
    for (bucket, count) in row.wait.iter_mut().chain(&mut row.run).enumerate() {
        *count = bucket as u64 * times;
    }
    row
}

/// Returns the sum of rows with these factors.
fn sum(at: UnixMillis, tool: &str, times: u64) -> MetricRow {
    MetricRow { worker: None, ..row(at, tool, "", times) }
}

async fn metrics_of_workers_are_summed(bench: ContractBench) {
    let at = bench.now().await / MINUTE * MINUTE;
    bench.add(&[row(at, "deploy", "v", 1), row(at, "report", "v", 10)]).await;
    bench.add(&[row(at, "deploy", "w", 2)]).await;
    bench.add(&[row(at, "deploy", "v", 4)]).await;
    bench.add(&[]).await;
    assert_eq!(bench.metrics(0).await, [sum(at, "deploy", 7), sum(at, "report", 10)]);
}

async fn metrics_are_returned_since_time_oldest_first(bench: ContractBench) {
    let at = bench.now().await / MINUTE * MINUTE;
    let [first, second] = [at - 2 * MINUTE, at - MINUTE];
    bench.add(&[row(at, "b", "v", 3), row(first, "a", "v", 1)]).await;
    // A time inside a minute counts for that minute.
    bench.add(&[row(second + 59_999, "c", "v", 2), row(at, "a", "v", 4)]).await;
    let [one, two] = [sum(first, "a", 1), sum(second, "c", 2)];
    let [three, four] = [sum(at, "a", 4), sum(at, "b", 3)];
    let all = [one, two.clone(), three.clone(), four.clone()];
    assert_eq!(bench.metrics(first).await, all);
    assert_eq!(bench.metrics(first + 1).await, [two, three.clone(), four.clone()]);
    assert_eq!(bench.metrics(at).await, [three, four]);
    assert!(bench.metrics(at + 1).await.is_empty());
}

async fn old_minutes_are_merged_into_hours(bench: ContractBench) {
    let hour = bench.now().await / HOUR * HOUR - HOUR;
    bench.add(&[row(hour, "a", "v", 1), row(hour + MINUTE, "a", "v", 2)]).await;
    bench.add(&[row(hour + 59 * MINUTE, "a", "w", 4), row(hour + MINUTE, "b", "w", 8)]).await;
    assert_eq!(bench.metrics(0).await.len(), 4, "new minutes are separate");
    bench.advance(MINUTES + Duration::from_secs(3 * 3600));
    let now = bench.now().await / MINUTE * MINUTE;
    bench.add(&[row(now, "a", "v", 16)]).await;
    let expected = [sum(hour, "a", 7), sum(hour, "b", 8), sum(now, "a", 16)];
    assert_eq!(bench.metrics(0).await, expected);
}

async fn old_hours_are_deleted(bench: ContractBench) {
    let hour = bench.now().await / HOUR * HOUR;
    bench.add(&[row(hour, "a", "v", 1)]).await;
    bench.advance(HOURS - MINUTES);
    bench.add(&[row(hour + millis(HOURS - MINUTES), "a", "v", 2)]).await;
    assert_eq!(bench.metrics(0).await.len(), 2);
    bench.advance(MINUTES + Duration::from_secs(2 * 3600));
    let now = bench.now().await / MINUTE * MINUTE;
    bench.add(&[row(now, "a", "v", 4)]).await;
    let left: Vec<_> = bench.metrics(0).await.into_iter().map(|row| row.ended[0]).collect();
    assert_eq!(left, [2, 4]);
}

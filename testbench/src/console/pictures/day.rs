//! Counts of the tasks that ended in the last 24 hours: a day of a shop whose people work until the evening.

use std::ops::Range;

use outlive::store::{MetricRow, UnixMillis};

use crate::crash::random::Random;

/// Length of an interval of the charts, in milliseconds.
const INTERVAL: u64 = 10 * 60_000;
/// Number of intervals of a chart.
const INTERVALS: u64 = 144;

/// The hour of the day at which the pictures are taken, in the time of the shop.
const HOUR_NOW: u64 = 15;
/// Hours in which people approve calls.
const OFFICE_HOURS: Range<usize> = 7..20;
/// Tasks per hour of the day.
const PER_HOUR: [usize; 24] = [
    30, 26, 44, 24, 22, 24, 34, 50, 78, 110, 124, 118, 88, 102, 118, 114, 98, 80, 58, 46, 40, 36,
    32, 30,
];

/// A tool and its load.
struct Load {
    tool: &'static str,
    /// Percentage of all tasks.
    share: usize,
    /// Percentage of the tool's tasks that wait for an approval.
    gated: usize,
    /// Run time, in milliseconds.
    run: Range<u64>,
}

static LOADS: [Load; 4] = [
    Load { tool: "deploy", share: 12, gated: 100, run: 45_000..240_000 },
    Load { tool: "migrate_orders", share: 6, gated: 100, run: 200_000..1_500_000 },
    Load { tool: "refund", share: 26, gated: 30, run: 300..1_400 },
    Load { tool: "render_report", share: 56, gated: 0, run: 2_000..22_000 },
];

/// Returns the counts of the 24 hours until `now`, by interval and tool.
pub(super) fn rows(now: UnixMillis) -> Vec<MetricRow> {
    let mut random = Random::new(27);
    let (mut rows, mut number) = (Vec::new(), 0);
    for age in (0..INTERVALS).rev() {
        let at = (now / INTERVAL - age) * INTERVAL;
        let hour = hour(age);
        // 80 % to 120 % of a sixth of the hour.
        let tasks = (PER_HOUR[hour] * (80 + random.below(41)) + 300) / 600;
        let mut counts = LOADS.each_ref().map(|load| MetricRow::new(at, load.tool));
        for _ in 0..tasks {
            number += 1;
            let of = drawn(&mut random);
            count(&mut counts[of], &LOADS[of], (hour, number), &mut random);
        }
        rows.extend(counts.into_iter().filter(|row| row.ended != [0; 4]));
    }
    rows
}

/// Returns the hour of the day of an interval, by the number of intervals after it.
fn hour(age: u64) -> usize {
    usize::try_from((HOUR_NOW + 24 - age / 6) % 24).unwrap_or_default()
}

/// Draws the tool of a task.
fn drawn(random: &mut Random) -> usize {
    let (drawn, mut sum) = (random.below(100), 0);
    let found = LOADS.iter().position(|load| {
        sum += load.share;
        drawn < sum
    });
    found.unwrap_or_default()
}

/// Counts the task with a number.
fn count(row: &mut MetricRow, load: &Load, (hour, number): (usize, u64), random: &mut Random) {
    let outcome = match number {
        number if number % 50 == 17 => 1,
        number if number % 211 == 3 => 2,
        number if number % 487 == 5 => 3,
        _ => 0,
    };
    row.ended[outcome] += 1;
    let is_gated = OFFICE_HOURS.contains(&hour) && random.percent(load.gated);
    let wait = match is_gated {
        true => 60_000..2_400_000,
        false if PER_HOUR[hour] > 90 => 15..280,
        false => 4..60,
    };
    row.wait[MetricRow::bucket(random.millis(wait))] += 1;
    row.run[MetricRow::bucket(random.millis(load.run.clone()))] += 1;
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{INTERVAL, INTERVALS, LOADS, rows};

    const NOW: u64 = 1_794_980_589_007;

    #[test]
    fn day_has_about_1500_tasks_and_few_failures() {
        let rows = rows(NOW);
        let all: u64 = rows.iter().flat_map(|row| row.ended).sum();
        assert!((1_400..=1_650).contains(&all), "{all} tasks");
        let failed: u64 = rows.iter().map(|row| row.ended[1]).sum();
        assert!((15..=25).contains(&(failed * 1_000 / all)), "{failed} of {all} failed");
        for row in &rows {
            let ended: u64 = row.ended.iter().sum();
            assert_eq!([row.wait.iter().sum::<u64>(), row.run.iter().sum()], [ended; 2]);
        }
    }

    #[test]
    fn every_interval_of_the_day_has_tasks() {
        let rows = rows(NOW);
        let times: HashSet<u64> = rows.iter().map(|row| row.at).collect();
        assert_eq!(times.len() as u64, INTERVALS);
        assert!(times.iter().all(|at| *at <= NOW && *at > NOW - INTERVALS * INTERVAL));
        assert_eq!(LOADS.iter().map(|load| load.share).sum::<usize>(), 100);
    }
}

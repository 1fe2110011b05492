//! Counters and histograms, and their output in the Prometheus text format.

use std::{
    fmt::{self, Write},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Upper bounds of the buckets of [`Histogram`], in milliseconds.
const BUCKETS: [u64; 10] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000];

/// A counter.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, by: u64) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A histogram that is updated concurrently.
#[derive(Debug, Default)]
pub(crate) struct HistogramCell {
    buckets: [Count; BUCKETS.len()],
    count: Count,
    micros: Count,
}

impl HistogramCell {
    pub(crate) fn add(&self, took: Duration) {
        let fits = BUCKETS.iter().position(|millis| took <= Duration::from_millis(*millis));
        if let Some(bucket) = fits {
            self.buckets[bucket].add(1);
        }
        self.count.add(1);
        self.micros.add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn read(&self) -> Histogram {
        let mut below = 0;
        let up_to = |(millis, count): (&u64, &Count)| {
            below += count.get();
            (Duration::from_millis(*millis), below)
        };
        Histogram {
            buckets: BUCKETS.iter().zip(&self.buckets).map(up_to).collect(),
            count: self.count.get(),
            sum: Duration::from_micros(self.micros.get()),
        }
    }
}

/// Distribution of durations.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Histogram {
    /// Upper bound of each bucket, and the number of durations up to this bound.
    pub buckets: Vec<(Duration, u64)>,
    /// Number of durations.
    pub count: u64,
    /// Sum of all durations.
    pub sum: Duration,
}

/// Writes the lines of a histogram with the given label.
pub(crate) fn histogram(
    f: &mut impl Write,
    name: &str,
    label: &str,
    latency: &Histogram,
) -> fmt::Result {
    let comma = if label.is_empty() { "" } else { "," };
    for (up_to, count) in &latency.buckets {
        writeln!(f, "{name}_bucket{{{label}{comma}le=\"{}\"}} {count}", up_to.as_secs_f64())?;
    }
    writeln!(f, "{name}_bucket{{{label}{comma}le=\"+Inf\"}} {}", latency.count)?;
    let label = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    writeln!(f, "{name}_sum{label} {}", latency.sum.as_secs_f64())?;
    writeln!(f, "{name}_count{label} {}", latency.count)
}

pub(crate) fn head(f: &mut impl Write, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(f, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

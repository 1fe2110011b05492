//! Distribution of durations.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// Upper bounds of the buckets in milliseconds. They are those of the server's histograms.
const BOUNDS: [u64; 10] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000];

/// A histogram that is updated concurrently.
#[derive(Debug, Default)]
pub(crate) struct HistogramCell {
    buckets: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

/// Durations at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distribution {
    /// Number of durations up to each bound.
    below: [u64; BOUNDS.len()],
    count: u64,
    sum: Duration,
}

impl HistogramCell {
    pub(crate) fn add(&self, took: Duration) {
        let fits = BOUNDS.iter().position(|millis| took <= Duration::from_millis(*millis));
        if let Some(bucket) = fits {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Distribution {
        let mut below = [0; BOUNDS.len()];
        let mut sum = 0;
        for (bound, bucket) in below.iter_mut().zip(&self.buckets) {
            sum += bucket.load(Ordering::Relaxed);
            *bound = sum;
        }
        Distribution {
            below,
            count: self.count.load(Ordering::Relaxed),
            sum: Duration::from_micros(self.micros.load(Ordering::Relaxed)),
        }
    }
}

impl Distribution {
    /// Writes the lines of the histogram.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, name: &str, label: &str) -> fmt::Result {
        for (millis, count) in BOUNDS.iter().zip(self.below) {
            let bound = Duration::from_millis(*millis).as_secs_f64();
            writeln!(f, "{name}_bucket{{{label},le=\"{bound}\"}} {count}")?;
        }
        writeln!(f, "{name}_bucket{{{label},le=\"+Inf\"}} {}", self.count)?;
        writeln!(f, "{name}_sum{{{label}}} {}", self.sum.as_secs_f64())?;
        writeln!(f, "{name}_count{{{label}}} {}", self.count)
    }
}

//! How many of something there are.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// Counts what is there. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicU64>);

/// One of what a [`Gauge`] counts, until it is dropped.
#[derive(Debug)]
pub struct GaugeGuard(Arc<AtomicU64>);

impl Gauge {
    /// Counts one more.
    pub fn enter(&self) -> GaugeGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(Arc::clone(&self.0))
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

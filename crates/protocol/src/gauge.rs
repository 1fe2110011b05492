//! A gauge for metrics.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// A shared counter of live objects. Clones share the count.
#[derive(Clone, Debug, Default)]
pub struct Gauge(Arc<AtomicU64>);

/// One counted object. Dropping the guard decrements its [`Gauge`].
#[derive(Debug)]
pub struct GaugeGuard(Arc<AtomicU64>);

impl Gauge {
    /// Increments the count until the guard is dropped.
    pub fn enter(&self) -> GaugeGuard {
        self.0.fetch_add(1, Ordering::Relaxed);
        GaugeGuard(Arc::clone(&self.0))
    }

    /// Returns the count.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

//! The clock of a server under test, which can skip time.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use outlive_protocol::Clock;

/// A clock that runs ahead of another clock by the skipped time.
#[derive(Debug)]
pub(crate) struct TestClock {
    inner: Arc<dyn Clock>,
    skipped_millis: AtomicU64,
}

impl TestClock {
    pub(crate) fn new(inner: Arc<dyn Clock>) -> Self {
        Self { inner, skipped_millis: AtomicU64::new(0) }
    }

    /// Skips this many milliseconds.
    pub(crate) fn skip(&self, millis: u64) {
        self.skipped_millis.fetch_add(millis, Ordering::AcqRel);
    }

    fn skipped(&self) -> Duration {
        Duration::from_millis(self.skipped_millis.load(Ordering::Acquire))
    }
}

impl Clock for TestClock {
    fn now(&self) -> Instant {
        self.inner.now() + self.skipped()
    }

    fn wall(&self) -> SystemTime {
        self.inner.wall() + self.skipped()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.inner.sleep(span)
    }
}

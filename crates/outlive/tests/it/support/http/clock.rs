//! A clock that the test advances.

use std::{
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};

use outlive::server::Clock;
use tokio::sync::watch;

/// A clock that changes only by [`ManualClock::advance`]. Clones share the time.
#[derive(Clone, Debug)]
pub(crate) struct ManualClock {
    start: Instant,
    passed: watch::Sender<Duration>,
}

impl ManualClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), passed: watch::channel(Duration::ZERO).0 }
    }

    pub(crate) fn advance(&self, span: Duration) {
        self.passed.send_modify(|passed| *passed += span);
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.start + *self.passed.borrow()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let mut passed = self.passed.subscribe();
        let end = *passed.borrow() + span;
        Box::pin(async move {
            // An error means that the clock was dropped; the sleep then never ends.
            if passed.wait_for(|passed| *passed >= end).await.is_err() {
                std::future::pending().await
            }
        })
    }
}

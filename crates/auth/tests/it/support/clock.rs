//! A clock for tests.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use outlive_protocol::Clock;

/// A clock that advances only when a test moves it.
#[derive(Clone)]
pub(crate) struct StandingClock {
    start: (Instant, SystemTime),
    moved: Arc<Mutex<Duration>>,
}

impl StandingClock {
    pub(crate) fn new() -> Self {
        Self { start: (Instant::now(), SystemTime::now()), moved: Arc::default() }
    }

    pub(crate) fn advance(&self, span: Duration) {
        *self.moved.lock().unwrap() += span;
    }
}

impl Clock for StandingClock {
    fn now(&self) -> Instant {
        self.start.0 + *self.moved.lock().unwrap()
    }

    fn wall(&self) -> SystemTime {
        self.start.1 + *self.moved.lock().unwrap()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }
}

impl fmt::Debug for StandingClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StandingClock")
    }
}

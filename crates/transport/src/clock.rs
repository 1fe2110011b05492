//! Clock of the tokio runtime.

use std::{
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};

use outlive_protocol::Clock;

/// Clock of the tokio runtime. Pausing the runtime's time in tests pauses this clock.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TokioClock;

impl TokioClock {
    /// Returns the clock.
    pub fn new() -> Self {
        Self
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(tokio::time::sleep(span))
    }
}

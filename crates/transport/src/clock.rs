//! Time as the runtime has it.

use std::{
    future::Future,
    pin::Pin,
    time::{Duration, Instant},
};

use outlive_protocol::Clock;

/// The runtime's clock. Tests that pause the runtime's time pause this one.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct TokioClock;

impl TokioClock {
    /// The runtime's clock.
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

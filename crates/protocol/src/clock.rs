//! Where time comes from, so that tests can hold it still.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    time::{Duration, Instant, SystemTime},
};

/// A source of time. The transports bring the runtime's; tests bring one they move by hand.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Now, for measuring spans.
    fn now(&self) -> Instant;

    /// Now, for what other processes will compare with their own time.
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Completes after `span`.
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

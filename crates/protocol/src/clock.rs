//! The source of time, which tests replace with a manual clock.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    time::{Duration, Instant, SystemTime},
};

/// A source of time. Transports use the clock of the runtime, and tests use a manual clock.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// Returns the monotonic time, for measuring durations.
    fn now(&self) -> Instant;

    /// Returns the wall-clock time, for values that other processes compare with their own clocks.
    fn wall(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Completes after `span`.
    fn sleep(&self, span: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

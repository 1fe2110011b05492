//! Times of one call: at its upstream, and in waits that neither upstream nor gateway cause.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Times of one call in microseconds.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// In exchanges with the upstream.
    exchanges: AtomicU64,
    /// Of these, while an input request was open.
    inputs: AtomicU64,
    /// Outside of exchanges, for a free place, for input or for the next attempt.
    waits: AtomicU64,
}

impl Times {
    pub(super) fn add_exchange(&self, time: Duration) {
        add(&self.exchanges, time);
    }

    pub(super) fn add_input(&self, time: Duration) {
        add(&self.inputs, time);
    }

    /// Awaits something that is not the work of the gateway.
    pub(super) async fn wait<T>(&self, wait: impl Future<Output = T>) -> T {
        let start = Instant::now();
        let done = wait.await;
        add(&self.waits, start.elapsed());
        done
    }

    /// Returns the time at the upstream.
    pub(super) fn upstream(&self) -> Duration {
        read(&self.exchanges).saturating_sub(read(&self.inputs))
    }

    /// Returns the time that the gateway added to a call.
    pub(super) fn added(&self, total: Duration) -> Duration {
        total.saturating_sub(read(&self.exchanges)).saturating_sub(read(&self.waits))
    }
}

fn add(to: &AtomicU64, time: Duration) {
    to.fetch_add(u64::try_from(time.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
}

fn read(from: &AtomicU64) -> Duration {
    Duration::from_micros(from.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_neither_time_of_the_upstream_nor_of_the_gateway() {
        let times = Times::default();
        times.add_exchange(Duration::from_millis(70));
        times.add_input(Duration::from_millis(50));
        add(&times.waits, Duration::from_millis(10));
        assert_eq!(times.upstream(), Duration::from_millis(20));
        assert_eq!(times.added(Duration::from_millis(81)), Duration::from_millis(1));
    }
}

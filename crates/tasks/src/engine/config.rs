//! [`EngineConfig`].

use std::time::Duration;

use crate::store::{TaskOutcome, Transition};

/// Configuration of an engine. Each default is meant for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Duration of a lease. A worker renews its leases with heartbeats.
    pub lease_duration: Duration,
    /// How long a task that waits for input stays in memory.
    pub park_after: Duration,
    /// Interval between two claims when no change notification arrives.
    pub poll_interval: Duration,
    /// Interval between two sweeps.
    pub sweep_interval: Duration,
    /// Maximum number of tasks that run in this process at the same time.
    pub max_running: usize,
    /// Maximum number of tasks of one caller that run in this process at the same time; `None` for a
    /// quarter of `max_running`. Its other tasks wait in the store, so that no caller takes all places. A
    /// task that has a permit of a [`Capacity`](super::Capacity) starts all the same.
    pub max_running_per_caller: Option<usize>,
    /// Number of tasks that are claimed or swept at once.
    pub claim_batch: usize,
    /// How long a handler may take to stop after its task is cancelled.
    pub cancel_grace: Duration,
    /// How long the cleanup of a cancelled or expired task may take.
    pub cleanup_timeout: Duration,
    /// How long an ended task stays readable.
    pub retention: Duration,
    /// Number of crashes without journal progress after which a task is quarantined.
    pub max_crashes: u32,
    /// Delay before a task runs again after its second crash in a row. It doubles with each further
    /// crash up to `max_backoff`, and up to half of it is random. The first crash causes no delay, because
    /// the worker is its cause more often than the task.
    pub backoff: Duration,
    /// Maximum of that delay.
    pub max_backoff: Duration,
    /// How long a task is quarantined that exceeds `max_crashes` or whose journal is incompatible. Then it
    /// ends, unless an operator retries it. With zero it ends at once.
    pub quarantine_ttl: Duration,
}

impl EngineConfig {
    /// Returns how many tasks of one caller may run.
    pub(super) fn per_caller(&self) -> usize {
        self.max_running_per_caller.unwrap_or(self.max_running / 4).max(1)
    }

    /// Returns the transition of a task whose work is over. A cancelled or expired task is not quarantined.
    pub(super) fn over(&self, outcome: TaskOutcome, quarantine: bool) -> Transition {
        if quarantine && !self.quarantine_ttl.is_zero() && !outcome.needs_cleanup() {
            return Transition::Quarantine { outcome, ttl: self.quarantine_ttl };
        }
        Transition::End { outcome, retention: self.retention }
    }

    /// Returns the delay before a task runs again after this number of crashes in a row. `random` is any
    /// number.
    pub(super) fn backoff_after(&self, crashes: u32, random: u64) -> Duration {
        let Some(times) = crashes.checked_sub(2) else { return Duration::ZERO };
        let longest = self.backoff.saturating_mul(2_u32.saturating_pow(times));
        let half = longest.min(self.max_backoff) / 2;
        half + half.mul_f64(random as f64 / u64::MAX as f64)
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(30),
            park_after: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            sweep_interval: Duration::from_secs(10),
            max_running: 256,
            max_running_per_caller: None,
            claim_batch: 32,
            cancel_grace: Duration::from_secs(30),
            cleanup_timeout: Duration::from_secs(60),
            retention: Duration::from_secs(3600),
            max_crashes: 5,
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
            quarantine_ttl: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::EngineConfig;

    #[test]
    fn backoff_with_each_crash_doubles_up_to_its_maximum() {
        let config = EngineConfig::default();
        let seconds = |crashes, chance| config.backoff_after(crashes, chance).as_secs_f64();
        assert_eq!([seconds(0, 0), seconds(1, u64::MAX)], [0.0, 0.0], "the first does not wait");
        for (crashes, least) in [(2, 0.5), (3, 1.0), (4, 2.0), (7, 16.0), (8, 30.0), (99, 30.0)] {
            assert_eq!([seconds(crashes, 0), seconds(crashes, u64::MAX)], [least, least * 2.0]);
        }
        let never = EngineConfig { backoff: Duration::ZERO, ..config };
        assert_eq!(never.backoff_after(9, u64::MAX), Duration::ZERO);
    }
}

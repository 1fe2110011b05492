//! [`EngineConfig`].

use std::time::Duration;

use crate::store::{TaskOutcome, Transition};

/// Configuration of an engine. The defaults are suitable for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// Duration of a lease. A worker renews its leases with heartbeats.
    pub lease_duration: Duration,
    /// Time after which a task that waits for input is unloaded from memory.
    pub park_after: Duration,
    /// Interval between two claims when no change notification arrives.
    pub poll_interval: Duration,
    /// Interval between two sweeps.
    pub sweep_interval: Duration,
    /// Maximum number of tasks that run in this process at the same time.
    pub max_running: usize,
    /// Maximum number of tasks of one caller that run in this process at the same time; `None` for
    /// a quarter of `max_running`. Other tasks of the caller wait in the store, so one caller
    /// cannot take all slots. A task with a permit of a [`Capacity`](super::Capacity) ignores this
    /// limit.
    pub max_running_per_caller: Option<usize>,
    /// Maximum number of runs in this process that wait for input and cannot be parked, such as
    /// calls of another server that waits for the user. They do not count in `max_running`.
    pub max_idle_runs: usize,
    /// Maximum number of such runs of one caller.
    pub max_idle_runs_per_caller: usize,
    /// Maximum number of tasks per claim or sweep.
    pub claim_batch: usize,
    /// Time that a handler has to stop after its task is cancelled.
    pub cancel_grace: Duration,
    /// Timeout of the cleanup of a cancelled or expired task.
    pub cleanup_timeout: Duration,
    /// Time for which an ended task stays readable.
    pub retention: Duration,
    /// Crashes without journal progress after which a task is quarantined.
    pub max_crashes: u32,
    /// Backoff after the second crash in a row. The delay doubles with each further crash up to
    /// `max_backoff`, and up to half of it is random. The first crash causes no delay, because a
    /// single crash is usually not caused by the task.
    pub backoff: Duration,
    /// Maximum backoff.
    pub max_backoff: Duration,
    /// Time for which a task stays quarantined after too many crashes or with an incompatible
    /// journal. The task then ends, unless an operator retries it. With zero, the task ends
    /// immediately.
    pub quarantine_ttl: Duration,
    /// Whether the journal records the duration of each step, which a console shows. This reads the
    /// clock twice per step.
    pub record_durations: bool,
}

impl EngineConfig {
    /// Returns the maximum number of running tasks per caller.
    pub(super) fn per_caller(&self) -> usize {
        self.max_running_per_caller.unwrap_or(self.max_running / 4).max(1)
    }

    /// Returns the transition of a task that stops. A cancelled or expired task is not quarantined.
    pub(super) fn over(&self, outcome: TaskOutcome, quarantine: bool) -> Transition {
        if quarantine && !self.quarantine_ttl.is_zero() && !outcome.needs_cleanup() {
            return Transition::Quarantine { outcome, ttl: self.quarantine_ttl };
        }
        Transition::End { outcome, retention: self.retention }
    }

    /// Returns the backoff after `crashes` in a row. `random` is a random number for the jitter.
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
            max_idle_runs: 256,
            max_idle_runs_per_caller: 16,
            claim_batch: 32,
            cancel_grace: Duration::from_secs(30),
            cleanup_timeout: Duration::from_secs(60),
            retention: Duration::from_secs(3600),
            max_crashes: 5,
            backoff: Duration::from_secs(1),
            max_backoff: Duration::from_secs(60),
            quarantine_ttl: Duration::from_secs(7 * 24 * 3600),
            record_durations: false,
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
        assert_eq!(
            [seconds(0, 0), seconds(1, u64::MAX)],
            [0.0, 0.0],
            "the first crash causes no delay"
        );
        for (crashes, least) in [(2, 0.5), (3, 1.0), (4, 2.0), (7, 16.0), (8, 30.0), (99, 30.0)] {
            assert_eq!([seconds(crashes, 0), seconds(crashes, u64::MAX)], [least, least * 2.0]);
        }
        let never = EngineConfig { backoff: Duration::ZERO, ..config };
        assert_eq!(never.backoff_after(9, u64::MAX), Duration::ZERO);
    }
}

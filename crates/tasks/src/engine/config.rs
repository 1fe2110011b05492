//! How tasks are run.

use std::time::Duration;

use crate::store::{TaskOutcome, Transition};

/// How tasks are run. Each default is meant for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// For how long a worker has a task before it must say that it still lives.
    pub lease_duration: Duration,
    /// How long a task that waits for an answer stays in memory.
    pub park_after: Duration,
    /// How often the store is asked for work when nothing says that there is any.
    pub poll_interval: Duration,
    /// How often tasks whose time is over are looked for.
    pub sweep_interval: Duration,
    /// How many tasks run at once in this process.
    pub max_running: usize,
    /// How many tasks of one caller run at once in this process; `None` for a quarter of `max_running`.
    /// Others of it wait in the store, so that no caller takes all the places. One that has waited
    /// for a permit of a [`Capacity`](super::Capacity) and has got it begins all the same.
    pub max_running_per_caller: Option<usize>,
    /// How many tasks are claimed or swept at once.
    pub claim_batch: usize,
    /// How long a task that is asked to stop may take.
    pub cancel_grace: Duration,
    /// How long the clean-up after a task that was cancelled or has expired may take.
    pub cleanup_timeout: Duration,
    /// How long what has ended can still be read.
    pub retention: Duration,
    /// How many workers in a row a task may lose without recording anything.
    pub max_crashes: u32,
    /// How long a task waits that has lost a second worker in a row; twice as long each time after
    /// that, up to `max_backoff`. Up to half of it is left to chance. After the first it does not
    /// wait: that was the worker's fault more often than its own.
    pub backoff: Duration,
    /// How long it waits at most.
    pub max_backoff: Duration,
    /// How long a task that has lost more, or whose journal cannot be read any more, is kept for an
    /// operator, who may have it tried again; then it ends. With zero it ends at once.
    pub quarantine_ttl: Duration,
}

impl EngineConfig {
    /// How many tasks of one caller run at once.
    pub(super) fn per_caller(&self) -> usize {
        self.max_running_per_caller.unwrap_or(self.max_running / 4).max(1)
    }

    /// What becomes of a task whose work is over; `keep` if an operator has to look at it. One that
    /// was cancelled needs none.
    pub(super) fn over(&self, outcome: TaskOutcome, keep: bool) -> Transition {
        if keep && !self.quarantine_ttl.is_zero() && !outcome.needs_cleanup() {
            return Transition::Quarantine { outcome, ttl: self.quarantine_ttl };
        }
        Transition::End { outcome, retention: self.retention }
    }

    /// How long to wait before a task is begun again that has lost so many workers in a row. `chance`
    /// is anything.
    pub(super) fn pause_after(&self, crashes: u32, chance: u64) -> Duration {
        let Some(times) = crashes.checked_sub(2) else { return Duration::ZERO };
        let longest = self.backoff.saturating_mul(2_u32.saturating_pow(times));
        let half = longest.min(self.max_backoff) / 2;
        half + half.mul_f64(chance as f64 / u64::MAX as f64)
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
    fn pauses_grow_up_to_a_limit_and_are_left_to_chance_by_half() {
        let config = EngineConfig::default();
        let seconds = |crashes, chance| config.pause_after(crashes, chance).as_secs_f64();
        assert_eq!([seconds(0, 0), seconds(1, u64::MAX)], [0.0, 0.0], "the first does not wait");
        for (crashes, least) in [(2, 0.5), (3, 1.0), (4, 2.0), (7, 16.0), (8, 30.0), (99, 30.0)] {
            assert_eq!([seconds(crashes, 0), seconds(crashes, u64::MAX)], [least, least * 2.0]);
        }
        let never = EngineConfig { backoff: Duration::ZERO, ..config };
        assert_eq!(never.pause_after(9, u64::MAX), Duration::ZERO);
    }
}

//! How tasks are run.

use std::time::Duration;

use crate::store::{TaskOutcome, Then};

/// How tasks are run. Each default is meant for production.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineConfig {
    /// For how long a worker has a task before it must say that it still lives.
    pub lease: Duration,
    /// How long a task that waits for an answer stays in memory.
    pub park_after: Duration,
    /// How often the store is asked for work when nothing says that there is any.
    pub poll: Duration,
    /// How often tasks whose time is over are looked for.
    pub sweep: Duration,
    /// How many tasks run at once in this process.
    pub running: usize,
    /// How many tasks of one caller run at once in this process; `None` for a quarter of `running`.
    /// Others of it wait in the store, so that no caller takes all the places. One that has waited
    /// for a permit of a [`Capacity`](super::Capacity) and has got it begins all the same.
    pub max_running_per_caller: Option<usize>,
    /// How many tasks are claimed or swept at once.
    pub batch: usize,
    /// How long a task that is asked to stop may take.
    pub cancel_grace: Duration,
    /// How long the clean-up after a task that was cancelled or has expired may take.
    pub clean_up: Duration,
    /// How long what has ended can still be read.
    pub retention: Duration,
    /// How many workers in a row a task may lose without recording anything.
    pub crashes: u32,
    /// How long a task waits that has lost a second worker in a row; twice as long each time after
    /// that, up to `max_back_off`. Up to half of it is left to chance. After the first it does not
    /// wait: that was the worker's fault more often than its own.
    pub back_off: Duration,
    /// How long it waits at most.
    pub max_back_off: Duration,
    /// How long a task that has lost more, or whose journal cannot be read any more, is kept for an
    /// operator, who may have it tried again; then it ends. With zero it ends at once.
    pub hold: Duration,
}

impl EngineConfig {
    /// How many tasks of one caller run at once.
    pub(super) fn per_caller(&self) -> usize {
        self.max_running_per_caller.unwrap_or(self.running / 4).max(1)
    }

    /// What becomes of a task whose work is over; `keep` if an operator has to look at it. One that
    /// was cancelled needs none.
    pub(super) fn over(&self, outcome: TaskOutcome, keep: bool) -> Then {
        if keep && !self.hold.is_zero() && !outcome.is_unfinished() {
            return Then::Keep { outcome, hold: self.hold };
        }
        Then::End { outcome, retention: self.retention }
    }

    /// How long to wait before a task is begun again that has lost so many workers in a row. `chance`
    /// is anything.
    pub(super) fn pause_after(&self, crashes: u32, chance: u64) -> Duration {
        let Some(times) = crashes.checked_sub(2) else { return Duration::ZERO };
        let longest = self.back_off.saturating_mul(2_u32.saturating_pow(times));
        let half = longest.min(self.max_back_off) / 2;
        half + half.mul_f64(chance as f64 / u64::MAX as f64)
    }
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(30),
            park_after: Duration::from_secs(10),
            poll: Duration::from_secs(1),
            sweep: Duration::from_secs(10),
            running: 256,
            max_running_per_caller: None,
            batch: 32,
            cancel_grace: Duration::from_secs(30),
            clean_up: Duration::from_secs(60),
            retention: Duration::from_secs(3600),
            crashes: 5,
            back_off: Duration::from_secs(1),
            max_back_off: Duration::from_secs(60),
            hold: Duration::from_secs(7 * 24 * 3600),
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
        let never = EngineConfig { back_off: Duration::ZERO, ..config };
        assert_eq!(never.pause_after(9, u64::MAX), Duration::ZERO);
    }
}

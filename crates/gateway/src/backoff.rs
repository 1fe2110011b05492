//! Backoff between starts of an upstream that exits or cannot be reached.

use std::time::{Duration, Instant};

/// Delay before the second attempt. It doubles with each failure.
const FIRST: Duration = Duration::from_secs(1);

/// Longest delay.
const LONGEST: Duration = Duration::from_secs(60);

/// Time without a failure after which the next failure has the first delay again.
const RESET: Duration = Duration::from_secs(60);

/// Failures of an upstream and the time of the next attempt.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Instant>,
}

impl Backoff {
    /// Records a failure and returns the delay before the next attempt.
    pub(crate) fn failed(&mut self, now: Instant) -> Duration {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) >= self.delay() + RESET)
        {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
        self.delay()
    }

    /// Returns how long an attempt has to wait at `now`, or `None` if it may start.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let next = self.last? + self.delay();
        next.checked_duration_since(now).filter(|wait| !wait.is_zero())
    }

    /// Allows the next attempt at once.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    fn delay(&self) -> Duration {
        match self.failures {
            0 => Duration::ZERO,
            failures => (FIRST * (1 << (failures - 1).min(6))).min(LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_to_a_minute_and_is_reset_by_a_minute_without_failure() {
        let mut backoff = Backoff::default();
        let mut now = Instant::now();
        assert_eq!(backoff.wait(now), None);
        let mut delays = Vec::new();
        for _ in 0..8 {
            let delay = backoff.failed(now);
            assert_eq!(backoff.wait(now), Some(delay));
            now += delay;
            assert_eq!(backoff.wait(now), None);
            delays.push(delay.as_secs());
        }
        assert_eq!(delays, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(backoff.failed(now + Duration::from_secs(121)).as_secs(), 1);
        backoff.clear();
        assert_eq!(backoff.wait(now), None);
    }
}

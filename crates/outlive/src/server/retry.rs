//! Retry settings of a step.

use std::time::Duration;

/// Number of attempts and backoff of [`Durable::step_retry`](crate::server::Durable::step_retry).
/// The backoff doubles after each attempt.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    attempts: u32,
    first: Duration,
    longest: Duration,
}

impl Retry {
    /// Allows this many attempts in total, at least one. The initial backoff is 100 ms, the maximum
    /// 10 s.
    pub fn attempts(attempts: u32) -> Self {
        Self {
            attempts: attempts.max(1),
            first: Duration::from_millis(100),
            longest: Duration::from_secs(10),
        }
    }

    /// Sets the delay after the first attempt. The delay doubles after each further attempt.
    #[must_use]
    pub fn initial_backoff(mut self, pause: Duration) -> Self {
        self.first = pause;
        self
    }

    /// Sets the maximum delay between two attempts.
    #[must_use]
    pub fn max_backoff(mut self, pause: Duration) -> Self {
        self.longest = pause;
        self
    }

    /// Returns the first attempt.
    pub(crate) fn first(&self) -> Attempt {
        Attempt { number: 1, last: self.attempts == 1 }
    }

    /// Returns the attempt after one that failed.
    pub(crate) fn after(&self, attempt: Attempt) -> Attempt {
        let number = attempt.number + 1;
        Attempt { number, last: number >= self.attempts }
    }

    /// Returns the delay after `tried` attempts.
    pub(crate) fn pause(&self, tried: u32) -> Duration {
        let factor = 1_u32.checked_shl(tried.saturating_sub(1)).unwrap_or(u32::MAX);
        self.first.saturating_mul(factor).min(self.longest)
    }
}

/// One attempt of a step; see [`Durable::step_retry`].
///
/// [`Durable::step_retry`]: crate::server::Durable::step_retry
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// Number of this attempt in this run of the handler, from 1.
    pub number: u32,
    /// Whether this is the last attempt. If it fails, the step fails.
    pub last: bool,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Retry;

    #[test]
    fn backoff_doubles_up_to_maximum() {
        let retry = Retry::attempts(9).initial_backoff(Duration::from_secs(1));
        let seconds = |tried| retry.pause(tried).as_secs();
        assert_eq!([1, 2, 3, 4, 5, 99].map(seconds), [1, 2, 4, 8, 10, 10]);
    }

    #[test]
    fn attempts_are_numbered_and_mark_the_last() {
        let retry = Retry::attempts(3);
        let second = retry.after(retry.first());
        let all = [retry.first(), second, retry.after(second)];
        assert_eq!(all.map(|it| (it.number, it.last)), [(1, false), (2, false), (3, true)]);
        assert!(Retry::attempts(0).first().last);
    }
}

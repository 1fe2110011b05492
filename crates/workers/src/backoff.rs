//! Backoff between the starts of a process that exits by itself.

use std::time::Duration;

/// Longest delay.
const LONGEST: Duration = Duration::from_secs(30);

/// Failures in a row of a process that is restarted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Records a failure, and returns the delay before the next start: none, one second, two, four,
    /// and so on up to 30.
    pub(crate) fn failed(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        match self.failures {
            1 => Duration::ZERO,
            failures => Duration::from_secs(1 << (failures - 2).min(5)).min(LONGEST),
        }
    }

    /// Forgets the failures, because the process was useful.
    pub(crate) fn clear(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::Backoff;

    #[test]
    fn delay_is_zero_and_then_doubles_to_thirty_seconds() {
        let mut backoff = Backoff::default();
        let delays: Vec<u64> = (0..8).map(|_| backoff.failed().as_secs()).collect();
        assert_eq!(delays, [0, 1, 2, 4, 8, 16, 30, 30]);
        backoff.clear();
        assert_eq!(backoff.failed().as_secs(), 0);
    }
}

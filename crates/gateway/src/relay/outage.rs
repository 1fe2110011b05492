//! Time during which an upstream cannot be reached while one of its tasks is followed.

use std::time::Duration;

use tokio::time::Instant;

/// Longest outage during which a task is polled.
pub(super) const MAX_OUTAGE: Duration = Duration::from_secs(3_600);

/// First and longest delay between two attempts.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(5);

/// Longest delay that an upstream may name.
const MAX_NAMED: Duration = Duration::from_secs(60);

/// An outage, if there is one.
#[derive(Debug, Default)]
pub(super) struct Outage {
    since: Option<Instant>,
    failures: u32,
}

impl Outage {
    /// Records that the upstream can be reached.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// Records a failed attempt. Returns the delay before the next one, or `None` if the outage is
    /// too long. `named` is the delay that the upstream names.
    pub(super) fn failed(&mut self, named: Option<Duration>) -> Option<Duration> {
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let delay = (FIRST * (1 << self.failures.min(8))).min(LONGEST);
        self.failures += 1;
        let delay = named.map_or(delay, |named| named.clamp(FIRST, MAX_NAMED));
        (now.duration_since(since) < MAX_OUTAGE).then_some(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn attempts_end_after_an_hour_and_start_anew_after_a_success() {
        let mut outage = Outage::default();
        let mut attempts = 0;
        while let Some(delay) = outage.failed(None) {
            tokio::time::advance(delay).await;
            attempts += 1;
        }
        assert!((700..800).contains(&attempts), "{attempts}");
        outage.end();
        assert_eq!(outage.failed(None), Some(FIRST));
        assert_eq!(outage.failed(Some(Duration::from_secs(9))), Some(Duration::from_secs(9)));
        assert_eq!(outage.failed(Some(Duration::MAX)), Some(MAX_NAMED));
    }
}

//! The timeouts of a relayed request, which stop while its input requests are open.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Clock {
    begun: Instant,
    span: Option<Duration>,
    /// Remaining time, while the clock is stopped.
    left: Duration,
    /// Deadlines, while the clock runs.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    since: Instant,
    until: Option<Instant>,
}

impl Clock {
    pub(super) fn new(span: Option<Duration>, total: Duration) -> Self {
        let begun = Instant::now();
        let mut clock = Self { begun, span, left: total, running: None };
        clock.run(begun);
        clock
    }

    fn run(&mut self, now: Instant) {
        let until = self.span.and_then(|span| now.checked_add(span));
        self.running = Some(Running { since: now, until });
    }

    /// Stops or starts the clock. A start restarts the timeout.
    pub(super) fn pause(&mut self, paused: bool) {
        let now = Instant::now();
        match (&self.running, paused) {
            (Some(running), true) => {
                self.left = self.left.saturating_sub(now.duration_since(running.since));
                self.running = None;
            }
            (None, false) => self.run(now),
            _ => {}
        }
    }

    /// Restarts the timeout, because the server shows that it works.
    pub(super) fn restart(&mut self) {
        let until = self.span.and_then(|span| Instant::now().checked_add(span));
        if let Some(running) = &mut self.running {
            running.until = until;
        }
    }

    /// Replaces the next deadline, because a user logs in.
    pub(super) fn extend(&mut self, until: Instant) {
        if let Some(running) = &mut self.running {
            self.left = self.left.max(until.saturating_duration_since(running.since));
            running.until = Some(until);
        }
    }

    /// Returns the time at which the request times out, unless the clock is stopped.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let running = self.running.as_ref()?;
        let total = running.since.checked_add(self.left);
        match (running.until, total) {
            (Some(until), Some(total)) => Some(until.min(total)),
            (until, total) => until.or(total),
        }
    }

    /// Returns the timeout, for messages and extensions.
    pub(super) fn span(&self) -> Duration {
        self.span.unwrap_or(self.left)
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }
}

/// Waits until a deadline, forever without one.
pub(super) async fn alarm(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, advance};

    use super::Clock;

    fn second(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    #[tokio::test(start_paused = true)]
    async fn stopped_clock_has_no_deadline_and_restarts_with_remaining_total() {
        let mut clock = Clock::new(Some(second(10)), second(15));
        assert_eq!(clock.deadline(), Some(Instant::now() + second(10)));
        advance(second(8)).await;
        clock.pause(true);
        advance(second(3600)).await;
        assert_eq!(clock.deadline(), None);
        clock.pause(false);
        assert_eq!(clock.deadline(), Some(Instant::now() + second(7)));
        clock.restart();
        assert_eq!(clock.deadline(), Some(Instant::now() + second(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn clock_without_timeout_has_total_deadline() {
        let clock = Clock::new(None, second(5));
        assert_eq!(clock.deadline(), Some(Instant::now() + second(5)));
        assert_eq!(Clock::new(None, Duration::MAX).deadline(), None);
    }
}

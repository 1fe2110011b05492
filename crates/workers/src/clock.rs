//! The timeout of a call, whose clock stops while the call waits.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep};

/// The timeout of a call.
pub(crate) struct CallClock {
    timeout: Duration,
    rest: Duration,
    /// Since when the clock runs, and the timer of its end.
    runs: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl CallClock {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self { timeout, rest: timeout, runs: None }
    }

    /// Returns the timeout.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Completes when the time is over. The clock stops while `is_waiting`.
    pub(crate) fn poll(&mut self, is_waiting: bool, task: &mut Context<'_>) -> Poll<()> {
        if is_waiting {
            if let Some((since, _)) = self.runs.take() {
                self.rest = self.rest.saturating_sub(since.elapsed());
            }
            return Poll::Pending;
        }
        let rest = self.rest;
        let (_, timer) = self.runs.get_or_insert_with(|| (Instant::now(), Box::pin(sleep(rest))));
        timer.as_mut().poll(task)
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, time::Duration};

    use tokio::time::{Instant, timeout};

    use super::CallClock;

    #[tokio::test(start_paused = true)]
    async fn clock_stops_while_the_call_waits() {
        let mut clock = CallClock::new(Duration::from_secs(10));
        let mut run = async |seconds: u64, is_waiting: bool| {
            let end = poll_fn(|task| clock.poll(is_waiting, task));
            timeout(Duration::from_secs(seconds), end).await.is_ok()
        };
        assert!(!run(6, false).await);
        assert!(!run(100, true).await);
        let before = Instant::now();
        assert!(run(100, false).await);
        assert_eq!(before.elapsed().as_secs(), 4);
    }
}

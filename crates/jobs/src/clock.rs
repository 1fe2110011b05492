//! Time limit of a command. The clock stops while the command waits for a response.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Clock {
    left: Option<Duration>,
    /// Time when the clock was last started. `None` while it is stopped.
    since: Option<Instant>,
}

impl Clock {
    pub(super) fn start(limit: Option<Duration>) -> Self {
        Self { left: limit, since: Some(Instant::now()) }
    }

    /// Returns the deadline if the clock keeps running. Returns `None` if the deadline overflows.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.since?.checked_add(self.left?)
    }

    pub(super) fn stop(&mut self) {
        if let Some(since) = self.since.take() {
            self.left = self.left.map(|left| left.saturating_sub(since.elapsed()));
        }
    }

    pub(super) fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }
}

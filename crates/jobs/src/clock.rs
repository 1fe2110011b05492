//! How long a command may still run. The clock stands while it waits for a response.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Clock {
    left: Option<Duration>,
    /// When it was last set going; None while it stands.
    since: Option<Instant>,
}

impl Clock {
    pub(super) fn start(limit: Option<Duration>) -> Self {
        Self { left: limit, since: Some(Instant::now()) }
    }

    /// When the time is over, if it goes on like this. A time too far to be told is no limit.
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

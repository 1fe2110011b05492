//! Stream of a server's notifications outside of calls.

use tokio::sync::broadcast::{self, error::RecvError};

use super::notice::ServerNotification;

/// Stream of a server's notifications outside of calls. A slow reader loses the oldest ones.
#[derive(Debug)]
pub struct Notifications {
    heard: broadcast::Receiver<ServerNotification>,
}

impl Notifications {
    pub(crate) fn new(heard: broadcast::Receiver<ServerNotification>) -> Self {
        Self { heard }
    }

    /// Returns the next notification, or `None` after the client is dropped.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        loop {
            match self.heard.recv().await {
                Ok(notice) => return Some(notice),
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "notifications dropped because the reader is too slow");
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

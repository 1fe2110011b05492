//! Stream of a server's notifications outside of calls.

use std::sync::Arc;

use tokio::sync::broadcast::{self, error::RecvError};

use super::{notice::ServerNotification, unexpected::Unexpected};

/// Stream of a server's notifications outside of calls. A slow reader loses the oldest ones.
#[derive(Debug)]
pub struct Notifications {
    heard: broadcast::Receiver<ServerNotification>,
    unexpected: Arc<Unexpected>,
}

impl Notifications {
    pub(crate) fn new(
        heard: broadcast::Receiver<ServerNotification>,
        unexpected: Arc<Unexpected>,
    ) -> Self {
        Self { heard, unexpected }
    }

    /// Returns the next notification, or `None` after the client is dropped.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        loop {
            match self.heard.recv().await {
                Ok(notice) => return Some(notice),
                Err(RecvError::Lagged(missed)) => self.unexpected.notifications(missed),
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

//! What a server tells outside of calls, as a stream.

use tokio::sync::broadcast::{self, error::RecvError};

use super::notice::ServerNotification;

/// What a server tells outside of calls. Whoever reads too slowly misses the oldest.
#[derive(Debug)]
pub struct Notifications {
    heard: broadcast::Receiver<ServerNotification>,
}

impl Notifications {
    pub(crate) fn new(heard: broadcast::Receiver<ServerNotification>) -> Self {
        Self { heard }
    }

    /// The next one, or `None` when the client has gone.
    pub async fn next(&mut self) -> Option<ServerNotification> {
        loop {
            match self.heard.recv().await {
                Ok(notice) => return Some(notice),
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "notices were missed: they are read too slowly");
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

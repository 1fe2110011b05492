//! The writes, and the settings of all bare stores.

use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Size of the queue and of a batch, as in our stores.
pub(super) const QUEUE: usize = 1_024;

pub(super) const BATCH: usize = 512;

/// A write to commit.
pub(crate) enum Write {
    Create {
        id: String,
        principal: String,
        kind: String,
        origin: String,
        request: String,
    },
    Entry {
        task: String,
        key: String,
        body: String,
    },
    End {
        task: String,
        outcome: String,
    },
    /// An audit event.
    Event {
        task: String,
        principal: &'static str,
        what: &'static str,
    },
}

/// The TTL in milliseconds.
pub(super) const DAY: i64 = 86_400_000;

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// A write, and the sender that signals its commit.
pub(super) type Queued = (Write, oneshot::Sender<()>);

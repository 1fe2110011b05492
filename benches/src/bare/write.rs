//! What is written, and what all bare stores share.

use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// How many writes may wait, and how many share a commit: as many as in our stores.
pub(super) const QUEUE: usize = 1_024;

pub(super) const BATCH: usize = 512;

/// Something to commit.
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
    /// A line of the audit, for a task of this name.
    Event {
        task: String,
        principal: &'static str,
        what: &'static str,
    },
}

/// How long things are kept, in milliseconds.
pub(super) const DAY: i64 = 86_400_000;

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// A write, and who waits until it is on the disk.
pub(super) type Queued = (Write, oneshot::Sender<()>);

//! Counts of messages that a server should not send.

use std::sync::atomic::{AtomicU64, Ordering};

/// Number of messages that a server should not have sent, since the client was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UnexpectedMessages {
    /// Responses that no request waited for: to unknown or used IDs, or after a timeout. Counted on
    /// pipes.
    pub responses: u64,
    /// Input requests that the client does not declare.
    pub input_requests: u64,
    /// Notifications that were dropped because they came faster than they were read.
    pub notifications: u64,
}

/// Counters of [`UnexpectedMessages`].
#[derive(Debug, Default)]
pub(crate) struct Unexpected {
    responses: AtomicU64,
    input_requests: AtomicU64,
    notifications: AtomicU64,
}

impl Unexpected {
    /// Counts a response. Only the first is logged, because a server may send any number.
    pub(crate) fn response(&self) {
        if self.responses.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("dropped a response that no request waited for; others are counted");
        }
    }

    pub(crate) fn input_request(&self) {
        self.input_requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts notifications. Only the first are logged.
    pub(crate) fn notifications(&self, missed: u64) {
        if self.notifications.fetch_add(missed, Ordering::Relaxed) == 0 {
            tracing::warn!(missed, "notifications dropped because the reader is too slow");
        }
    }

    pub(crate) fn get(&self) -> UnexpectedMessages {
        UnexpectedMessages {
            responses: self.responses.load(Ordering::Relaxed),
            input_requests: self.input_requests.load(Ordering::Relaxed),
            notifications: self.notifications.load(Ordering::Relaxed),
        }
    }
}

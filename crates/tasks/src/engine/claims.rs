//! Counters of the claims that an engine sends to its store.

use std::{
    future::Future,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// Counters of the sequential claims of an engine.
#[derive(Default)]
pub(super) struct Claims {
    sent: AtomicU64,
    answered: AtomicU64,
    /// When the last claim for callers with few running tasks returned no task.
    no_others: Mutex<Option<Instant>>,
}

impl Claims {
    /// Awaits a claim and counts it.
    pub(super) async fn count<T>(&self, claim: impl Future<Output = T>) -> T {
        self.sent.fetch_add(1, Ordering::SeqCst);
        let answer = claim.await;
        self.answered.fetch_add(1, Ordering::SeqCst);
        answer
    }

    /// Returns the number of sent claims.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }

    /// Returns whether the store has answered the first `sent` claims.
    pub(super) fn are_answered(&self, sent: u64) -> bool {
        self.answered.load(Ordering::SeqCst) >= sent
    }

    /// Records whether a claim for callers with few running tasks returned any task.
    pub(super) fn found_others(&self, found: bool) {
        *self.no_others.lock().unwrap_or_else(PoisonError::into_inner) =
            (!found).then(Instant::now);
    }

    /// Returns whether a claim for callers with few running tasks returned none within this time.
    pub(super) fn found_none_within(&self, time: Duration) -> bool {
        let none_at = *self.no_others.lock().unwrap_or_else(PoisonError::into_inner);
        none_at.is_some_and(|none_at| none_at.elapsed() < time)
    }
}

//! [`StoreMonitor`] of the memory store.

use std::time::Duration;

use super::state::{MemoryStore, done};
use crate::store::{Phase, StoreFuture, StoreMonitor, StoreStats};

impl StoreMonitor for MemoryStore {
    fn stats(&self) -> StoreFuture<'_, StoreStats> {
        let now = self.now();
        let tasks = self.lock();
        let due = tasks.next_due(&[]);
        done(Ok(StoreStats {
            queued: tasks.count(Phase::Queued),
            running: tasks.count(Phase::Running),
            parked: tasks.count(Phase::Parked),
            quarantined: tasks.count(Phase::Quarantined),
            ended: tasks.count(Phase::Ended),
            bytes: tasks.all_bytes() as u64,
            oldest_due: due.and_then(|due| now.checked_sub(due)).map(Duration::from_millis),
        }))
    }

    fn stored_bytes<'a>(&'a self, principal: &'a str) -> StoreFuture<'a, u64> {
        done(Ok(self.lock().bytes(principal) as u64))
    }
}

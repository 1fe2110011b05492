//! How much callers may have stored: each, those without a name together, and all of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outlive_protocol::{Call, Fault, Principal};
use outlive_tasks::store::{Charge, Store, StoreError};

use super::{Tasks, unavailable};

/// How often it is looked whether the store has as much as it may.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// When a caller whose bytes are used up may try again: something may have expired by then.
const RETRY: Duration = Duration::from_secs(60);

/// Whether the store has as much as it may.
#[derive(Default)]
pub(super) struct Fullness(Arc<AtomicBool>);

impl Fullness {
    /// Looks at the store now and then, from now on. Must be called inside a runtime.
    pub(super) fn watch(store: &Arc<dyn Store>, max_bytes: u64) -> Self {
        let full = Arc::new(AtomicBool::new(false));
        let (store, weak) = (Arc::clone(store), Arc::downgrade(&full));
        tokio::spawn(async move {
            while weak.strong_count() > 0 {
                // A store that does not answer is refused for that.
                if let (Ok(census), Some(full)) = (store.census().await, weak.upgrade()) {
                    let is_full = census.bytes >= max_bytes;
                    if is_full && !full.swap(is_full, Ordering::Relaxed) {
                        let bytes = census.bytes;
                        tracing::warn!(bytes, max_bytes, "`max_store` is used up: no new tasks");
                    }
                    full.store(is_full, Ordering::Relaxed);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        Self(full)
    }
}

impl Tasks {
    /// Whether the store takes no new tasks and entries.
    pub(super) fn is_full(&self) -> bool {
        self.running().fullness.0.load(Ordering::Relaxed)
    }

    /// How many bytes whoever makes this call may have stored, and those that are counted with it.
    pub(super) fn max_bytes(&self, principal: &Principal) -> u64 {
        match principal.is_anonymous() {
            true => self.config.anonymous_store,
            false => self.config.store_per_caller,
        }
    }

    /// Whom a key-value entry is charged to.
    pub(super) fn charge(&self, principal: &Principal) -> Charge {
        let max_bytes = if self.is_full() { 0 } else { self.max_bytes(principal) };
        Charge { principal: principal.key().to_owned(), max_bytes }
    }

    /// Returns the error for a caller whose bytes, or the bytes of all callers, are used up.
    pub(super) fn over_bytes(&self, principal: &Principal) -> Fault {
        let limit = match (self.is_full(), principal.is_anonymous()) {
            (true, _) => "max_store",
            (false, true) => "max_anonymous_store",
            (false, false) => "max_store_bytes_per_caller",
        };
        Fault::OverLimit { limit: limit.into(), retry_after: RETRY }
    }

    /// What a caller hears of what its store has refused.
    pub(super) fn refused(&self, call: &Call, error: &StoreError) -> Fault {
        match error {
            StoreError::OverBytes => self.over_bytes(call.principal()),
            _ => unavailable(error),
        }
    }
}

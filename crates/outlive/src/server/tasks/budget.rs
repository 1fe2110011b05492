//! How much callers may have stored: each, those without a name together, and all of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outlive_protocol::{Call, Principal, ProtocolError};
use outlive_tasks::{
    engine::Allowance,
    store::{Charge, Store, StoreError},
};

use super::{Tasks, unavailable};

/// How often it is looked whether the store has as much as it may, if it does not fill up.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often that is looked at most.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

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
            let (mut before, mut interval) = (None, LOOK_EVERY);
            while weak.strong_count() > 0 {
                // A store that does not answer is refused for that.
                if let (Ok(census), Some(full)) = (store.stats().await, weak.upgrade()) {
                    let is_full = census.bytes >= max_bytes;
                    if is_full && !full.swap(is_full, Ordering::Relaxed) {
                        let bytes = census.bytes;
                        tracing::warn!(bytes, max_bytes, "`max_store` is used up: no new tasks");
                    }
                    full.store(is_full, Ordering::Relaxed);
                    let left = max_bytes.saturating_sub(census.bytes);
                    let grown = before.map_or(0, |before| census.bytes.saturating_sub(before));
                    interval = next_interval(interval, grown, left);
                    before = Some(census.bytes);
                }
                tokio::time::sleep(interval).await;
            }
        });
        Self(full)
    }
}

/// Returns when to look again after a store has grown by so many bytes in an interval, and so many are
/// left: four times at least before it is full, if it goes on growing so.
fn next_interval(last: Duration, grown: u64, left: u64) -> Duration {
    if grown == 0 {
        return LOOK_EVERY;
    }
    let rest = last.as_secs_f64() * left as f64 / grown as f64 / 4.0;
    let rest = rest.clamp(MIN_INTERVAL.as_secs_f64(), LOOK_EVERY.as_secs_f64());
    Duration::from_secs_f64(rest)
}

impl Tasks {
    /// Whether the store takes no new tasks and entries.
    pub(super) fn is_full(&self) -> bool {
        self.running().fullness.0.load(Ordering::Relaxed)
    }

    /// Returns how many bytes a principal may have stored now, with those that are counted with it.
    pub(super) fn allowance(&self, principal: &str) -> Allowance {
        let is_anonymous = principal == Principal::ANONYMOUS.key();
        let (max_bytes, limit) = match (self.is_full(), is_anonymous) {
            (true, _) => (0, "max_store"),
            (false, true) => (self.config.anonymous_store, "max_anonymous_store"),
            (false, false) => (self.config.store_per_caller, "max_store_bytes_per_caller"),
        };
        Allowance { max_bytes, limit }
    }

    /// Whom a key-value entry is charged to.
    pub(super) fn charge(&self, principal: &Principal) -> Charge {
        let max_bytes = self.allowance(principal.key()).max_bytes;
        Charge { principal: principal.key().to_owned(), max_bytes }
    }

    /// Returns the error for a caller whose bytes, or the bytes of all callers, are used up.
    pub(super) fn over_bytes(&self, principal: &Principal) -> ProtocolError {
        let limit = self.allowance(principal.key()).limit;
        ProtocolError::OverLimit { limit: limit.into(), retry_after: RETRY }
    }

    /// What a caller hears of what its store has refused.
    pub(super) fn refused(&self, call: &Call, error: &StoreError) -> ProtocolError {
        match error {
            StoreError::OverBytes => self.over_bytes(call.principal()),
            _ => unavailable(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LOOK_EVERY, MIN_INTERVAL, next_interval};

    #[test]
    fn store_that_fills_up_is_looked_at_more_often() {
        let mib = |count: u64| count << 20;
        assert_eq!(next_interval(LOOK_EVERY, 0, mib(4_096)), LOOK_EVERY);
        assert_eq!(next_interval(LOOK_EVERY, mib(10), mib(4_096)), LOOK_EVERY);
        assert_eq!(next_interval(LOOK_EVERY, mib(100), mib(200)), Duration::from_millis(2_500));
        assert_eq!(next_interval(Duration::from_secs(1), mib(100), mib(10)), MIN_INTERVAL);
        assert_eq!(next_interval(MIN_INTERVAL, 1, 0), MIN_INTERVAL);
        assert_eq!(next_interval(MIN_INTERVAL, 0, 0), LOOK_EVERY, "it is full, and stays so");
    }
}

//! Watches the limit on stored bytes of all callers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outlive_tasks::store::Store;

/// Interval between two checks of the store's size while the store does not grow.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Minimum interval between two checks.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Whether the store has reached `max_store`.
#[derive(Default)]
pub(crate) struct Fullness(Arc<AtomicBool>);

impl Fullness {
    /// Starts a background task that checks the size of the store. Must be called inside a Tokio
    /// runtime.
    pub(crate) fn watch(store: &Arc<dyn Store>, max_bytes: u64) -> Self {
        let full = Arc::new(AtomicBool::new(false));
        let (store, weak) = (Arc::clone(store), Arc::downgrade(&full));
        tokio::spawn(async move {
            let (mut before, mut interval) = (None, LOOK_EVERY);
            while weak.strong_count() > 0 {
                // If the store is unavailable, operations fail for that reason, so the flag stays
                // unchanged.
                if let (Ok(census), Some(full)) = (store.stats().await, weak.upgrade()) {
                    let is_full = census.bytes >= max_bytes;
                    if is_full && !full.swap(is_full, Ordering::Relaxed) {
                        let bytes = census.bytes;
                        tracing::warn!(
                            bytes,
                            max_bytes,
                            "stored bytes reached `max_store`; rejecting new tasks"
                        );
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

    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns the time until the next check: a quarter of the time until the store is full at its
/// current growth, within the two bounds.
fn next_interval(last: Duration, grown: u64, left: u64) -> Duration {
    if grown == 0 {
        return LOOK_EVERY;
    }
    let rest = last.as_secs_f64() * left as f64 / grown as f64 / 4.0;
    let rest = rest.clamp(MIN_INTERVAL.as_secs_f64(), LOOK_EVERY.as_secs_f64());
    Duration::from_secs_f64(rest)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{LOOK_EVERY, MIN_INTERVAL, next_interval};

    #[test]
    fn growing_store_is_checked_more_often() {
        let mib = |count: u64| count << 20;
        assert_eq!(next_interval(LOOK_EVERY, 0, mib(4_096)), LOOK_EVERY);
        assert_eq!(next_interval(LOOK_EVERY, mib(10), mib(4_096)), LOOK_EVERY);
        assert_eq!(next_interval(LOOK_EVERY, mib(100), mib(200)), Duration::from_millis(2_500));
        assert_eq!(next_interval(Duration::from_secs(1), mib(100), mib(10)), MIN_INTERVAL);
        assert_eq!(next_interval(MIN_INTERVAL, 1, 0), MIN_INTERVAL);
        assert_eq!(
            next_interval(MIN_INTERVAL, 0, 0),
            LOOK_EVERY,
            "a full store that does not grow"
        );
    }
}

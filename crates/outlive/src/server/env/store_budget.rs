//! How much callers may have stored: each, those without a name together, and all of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use outlive_tasks::store::Store;

/// How often it is looked whether the store has as much as it may, if it does not fill up.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often that is looked at most.
const MIN_INTERVAL: Duration = Duration::from_millis(250);

/// Whether the store has as much as it may.
#[derive(Default)]
pub(crate) struct Fullness(Arc<AtomicBool>);

impl Fullness {
    /// Looks at the store now and then, from now on. Must be called inside a runtime.
    pub(crate) fn watch(store: &Arc<dyn Store>, max_bytes: u64) -> Self {
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

    pub(crate) fn is_full(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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

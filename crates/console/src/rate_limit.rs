//! Limits of the console: a rate per person or address, and a number of streams.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of persons or addresses that one rate limit counts at once. Beyond it, new ones
/// are rejected until another one is idle.
const MAX_KEYS: usize = 16_384;

/// A rate limit by key.
pub(crate) struct RateLimit {
    interval: Duration,
    burst: u32,
    // A std mutex: no code awaits while it is held, and most accesses are one map lookup.
    /// Time at which the whole burst of a key is available again.
    keys: Mutex<HashMap<String, Instant>>,
}

impl RateLimit {
    /// Admits one action per `interval` on average, and `burst` actions at once.
    pub(crate) fn new(interval: Duration, burst: u32) -> Self {
        Self { interval, burst, keys: Mutex::default() }
    }

    /// Counts an action.
    ///
    /// # Errors
    ///
    /// Returns the time to wait if the key exceeds the limit. The action does not count then.
    pub(crate) fn admit(&self, key: &str, now: Instant) -> Result<(), Duration> {
        let mut keys = lock(&self.keys);
        if keys.len() >= MAX_KEYS && !keys.contains_key(key) {
            keys.retain(|_, regained| *regained > now);
            if keys.len() >= MAX_KEYS {
                return Err(self.interval);
            }
        }
        let regained = keys.entry(key.to_owned()).or_insert(now);
        let ahead = regained.saturating_duration_since(now);
        let allowed = self.interval.saturating_mul(self.burst.saturating_sub(1));
        if ahead > allowed {
            return Err(ahead.saturating_sub(allowed));
        }
        *regained = (*regained).max(now) + self.interval;
        Ok(())
    }
}

/// Numbers of open streams.
#[derive(Clone)]
pub(crate) struct StreamLimit {
    max: usize,
    max_per_key: usize,
    // A std mutex: no code awaits while it is held.
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl StreamLimit {
    pub(crate) fn new(max: usize, max_per_key: usize) -> Self {
        Self { max, max_per_key, open: Arc::default() }
    }

    /// Counts a stream until the guard is dropped. Returns `None` if a limit is reached.
    pub(crate) fn open(&self, key: &str) -> Option<StreamGuard> {
        let mut open = lock(&self.open);
        let total: usize = open.values().sum();
        let count = open.get(key).copied().unwrap_or_default();
        if total >= self.max || count >= self.max_per_key {
            return None;
        }
        open.insert(key.to_owned(), count + 1);
        Some(StreamGuard { open: Arc::clone(&self.open), key: key.to_owned() })
    }
}

/// An open stream.
pub(crate) struct StreamGuard {
    open: Arc<Mutex<HashMap<String, usize>>>,
    key: String,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        match open.get_mut(&self.key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.key)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The map is consistent between any two statements, so a panic of another thread leaves it
    // usable.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{MAX_KEYS, RateLimit, StreamLimit};

    #[test]
    fn burst_is_admitted_then_the_average_rate() {
        let limit = RateLimit::new(Duration::from_millis(100), 3);
        let start = Instant::now();
        for _ in 0..3 {
            assert_eq!(limit.admit("ann", start), Ok(()));
        }
        assert_eq!(limit.admit("ann", start), Err(Duration::from_millis(100)));
        assert_eq!(limit.admit("ben", start), Ok(()));
        assert_eq!(limit.admit("ann", start + Duration::from_millis(100)), Ok(()));
        assert!(limit.admit("ann", start + Duration::from_millis(100)).is_err());
    }

    #[test]
    fn number_of_keys_is_bounded() {
        let limit = RateLimit::new(Duration::from_secs(1), 1);
        let start = Instant::now();
        for key in 0..MAX_KEYS {
            assert_eq!(limit.admit(&key.to_string(), start), Ok(()));
        }
        assert!(limit.admit("one more", start).is_err());
        assert_eq!(limit.admit("one more", start + Duration::from_secs(2)), Ok(()));
    }

    #[test]
    fn streams_count_until_they_are_dropped() {
        let limit = StreamLimit::new(3, 2);
        let (one, _two) =
            (limit.open("a").expect("the first"), limit.open("a").expect("the second"));
        assert!(limit.open("a").is_none());
        let _other = limit.open("b").expect("another session");
        assert!(limit.open("c").is_none(), "the process has reached its limit");
        drop(one);
        assert!(limit.open("a").is_some());
    }
}

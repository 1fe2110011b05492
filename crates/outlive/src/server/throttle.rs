//! How often, and how many at once: limits per key, in bounded memory.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Keys that are remembered at once. Beyond it those that owe nothing are forgotten, and then the
/// rest share one: an attacker who invents names limits himself.
const KEYS: usize = 10_000;

/// How often something may happen: steadily, and in a burst.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    per_second: f64,
    burst: f64,
}

impl RateLimit {
    /// So many a second, and one second's worth at once.
    pub fn per_second(rate: f64) -> Self {
        Self { per_second: rate.max(f64::MIN_POSITIVE), burst: rate.max(1.0) }
    }

    /// So many at once.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        Self { burst: f64::from(burst.max(1)), ..self }
    }
}

/// Counts what happens under each key.
#[derive(Debug)]
pub(crate) struct Throttle {
    rate: Option<RateLimit>,
    concurrent: Option<u32>,
    // A std mutex: nothing awaits while it is held, and it is held for a look-up.
    keys: Mutex<HashMap<Box<str>, Usage>>,
}

#[derive(Clone, Copy, Debug)]
struct Usage {
    /// What may still happen at once, as of `at`.
    tokens: f64,
    at: Instant,
    running: u32,
}

/// Something is happening; dropping this says that it has ended.
#[derive(Debug)]
pub(crate) struct Permit {
    throttle: Arc<Throttle>,
    key: Box<str>,
}

/// Not now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// When it is worth trying again.
    pub(crate) retry_after: Duration,
}

/// A guess at how long a running call takes: nobody knows when it will end.
const SOON: Duration = Duration::from_secs(1);

impl Throttle {
    pub(crate) fn new(rate: Option<RateLimit>, concurrent: Option<u32>) -> Self {
        Self { rate, concurrent, keys: Mutex::default() }
    }

    /// Lets one more happen under this key, or says when.
    pub(crate) fn enter(self: &Arc<Self>, key: &str, now: Instant) -> Result<Permit, Busy> {
        let mut keys = self.lock();
        let key: Box<str> = self.room_for(&mut keys, key, now).into();
        let full = self.rate.map_or(f64::INFINITY, |rate| rate.burst);
        let usage = keys.entry(key.clone()).or_insert(Usage { tokens: full, at: now, running: 0 });
        if self.concurrent.is_some_and(|most| usage.running >= most) {
            return Err(Busy { retry_after: SOON });
        }
        if let Some(rate) = self.rate {
            let refilled = rate.refill(usage, now);
            if refilled < 1.0 {
                let wait = Duration::from_secs_f64(((1.0 - refilled) / rate.per_second).min(3600.0));
                return Err(Busy { retry_after: wait });
            }
            usage.tokens = refilled - 1.0;
            usage.at = now;
        }
        usage.running += 1;
        drop(keys);
        Ok(Permit { throttle: Arc::clone(self), key })
    }

    /// The key to count under.
    fn room_for<'k>(&self, keys: &mut HashMap<Box<str>, Usage>, key: &'k str, now: Instant) -> &'k str {
        if keys.len() < KEYS || keys.contains_key(key) {
            return key;
        }
        keys.retain(|_, usage| usage.running > 0 || self.rate.is_some_and(|rate| rate.refill(usage, now) < rate.burst));
        if keys.len() < KEYS { key } else { "" }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Usage>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RateLimit {
    fn refill(&self, usage: &Usage, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(usage.at).as_secs_f64();
        elapsed.mul_add(self.per_second, usage.tokens).min(self.burst)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(usage) = self.throttle.lock().get_mut(&self.key) {
            usage.running -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::{Duration, Instant}};

    use super::{Busy, KEYS, RateLimit, Throttle};

    #[test]
    fn a_burst_is_let_through_and_then_one_after_the_other() {
        let throttle = Arc::new(Throttle::new(Some(RateLimit::per_second(2.0).burst(3)), None));
        let start = Instant::now();
        for _ in 0..3 {
            throttle.enter("a", start).unwrap();
        }
        let busy = throttle.enter("a", start).unwrap_err();
        assert_eq!(busy, Busy { retry_after: Duration::from_millis(500) });
        assert!(throttle.enter("a", start + busy.retry_after).is_ok());
        assert!(throttle.enter("b", start).is_ok(), "another key has its own bucket");
    }

    #[test]
    fn what_has_ended_does_not_count_as_running() {
        let throttle = Arc::new(Throttle::new(None, Some(1)));
        let now = Instant::now();
        let first = throttle.enter("a", now).unwrap();
        assert!(throttle.enter("a", now).is_err());
        drop(first);
        assert!(throttle.enter("a", now).is_ok());
    }

    #[test]
    fn invented_keys_do_not_grow_the_table() {
        let throttle = Arc::new(Throttle::new(Some(RateLimit::per_second(1.0)), None));
        let now = Instant::now();
        for number in 0..KEYS + 100 {
            let _ = throttle.enter(&number.to_string(), now);
        }
        assert!(throttle.lock().len() <= KEYS + 1);
        assert!(throttle.enter("one more", now).is_err(), "they share one bucket, which is empty");
    }
}

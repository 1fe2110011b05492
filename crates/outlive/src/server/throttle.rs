//! Rate and concurrency limits per key: a tool, a caller or another string.
//!
//! A throttle has no clock and never waits: the caller passes the time, and gets a permit or a
//! retry delay. A key is stored only while it matters: an idle key, with no running call and its
//! full burst available, is dropped.

use std::{
    collections::HashMap,
    error, fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of keys that are not idle; further keys are rejected. They use about two
/// megabytes. Reaching the limit takes as many active identities, so rejecting further load is
/// appropriate.
const MAX_KEYS: usize = 16_384;

/// Minimum number of keys before a sweep for idle keys.
const MIN_SWEEP: usize = 64;

/// Retry delay if too many calls run. The time at which one ends is unknown; a second is short for
/// a person and long for a machine.
const RETRY_RUNNING: Duration = Duration::from_secs(1);

/// A rate limit: an average number of calls per second, and a burst.
///
/// `RateLimit::per_second(10.0).burst(20)` allows ten calls per second, and up to twenty at once
/// after a pause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// Time between two calls at the average rate.
    interval: Duration,
    burst: u32,
}

impl RateLimit {
    /// Allows `rate` calls per second on average. The burst is the same number, at least one.
    ///
    /// # Panics
    ///
    /// Panics if `rate` is not a number from 0.000001 (one in twelve days) to 1000000000.
    pub fn per_second(rate: f64) -> Self {
        assert!(
            (1e-6..=1e9).contains(&rate),
            "a rate limit must be from 1e-6 to 1e9 per second, not {rate}; omit the limit to allow any rate"
        );
        let burst = rate.ceil().min(f64::from(u32::MAX)) as u32;
        Self { interval: Duration::from_secs_f64(rate.recip()), burst }
    }

    /// Sets the number of calls that are allowed at once after a pause.
    ///
    /// # Panics
    ///
    /// Panics if `burst` is 0, which would reject every call.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        assert!(burst > 0, "a burst of 0 rejects every call; use at least 1");
        Self { burst, ..self }
    }

    /// Returns how far the calls of a key may run ahead of the average.
    fn head_start(self) -> Duration {
        self.interval.saturating_mul(self.burst - 1)
    }
}

/// Admits or rejects calls by key.
#[derive(Debug)]
pub(crate) struct Throttle {
    rate: Option<RateLimit>,
    concurrent: Option<u32>,
    // A std mutex: no code awaits while it is held, and most accesses are one map lookup. A sweep
    // takes longer, but happens at most once per doubling of the map.
    keys: Mutex<Keys>,
}

#[derive(Debug)]
struct Keys {
    states: HashMap<Arc<str>, State>,
    /// Number of keys at which the next sweep drops idle keys.
    sweep_at: usize,
    /// Time until which the map is full of keys that are not idle.
    full_until: Option<Instant>,
}

/// State of a key that is not idle.
#[derive(Debug)]
struct State {
    /// The key, shared with permits.
    key: Arc<str>,
    /// Time at which the whole burst is available again. It is the entire state of the token
    /// bucket: each call adds one interval, and the time may exceed now only by the burst.
    regained: Instant,
    running: u32,
}

impl State {
    fn is_at_rest(&self, now: Instant) -> bool {
        self.running == 0 && self.regained <= now
    }
}

impl Throttle {
    /// Returns a throttle with a rate limit, a concurrency limit, both or none.
    ///
    /// # Panics
    ///
    /// Panics if `concurrent` is 0, which would reject every call.
    pub(crate) fn new(rate: Option<RateLimit>, concurrent: Option<u32>) -> Self {
        assert!(
            concurrent != Some(0),
            "a concurrency limit of 0 rejects every call; use at least 1 or omit the limit"
        );
        let keys = Keys { states: HashMap::new(), sweep_at: MIN_SWEEP, full_until: None };
        Self { rate, concurrent, keys: Mutex::new(keys) }
    }

    /// Admits a call until the permit is dropped. A rejected call does not count.
    pub(crate) fn enter(self: &Arc<Self>, key: &str, now: Instant) -> Result<Permit, Busy> {
        if self.rate.is_none() && self.concurrent.is_none() {
            return Ok(Permit { held: None });
        }
        let mut keys = self.lock();
        if !keys.states.contains_key(key) {
            keys.make_room(now)?;
            let key: Arc<str> = key.into();
            let state = State { key: Arc::clone(&key), regained: now, running: 0 };
            keys.states.insert(key, state);
        }
        let state = keys.states.get_mut(key).expect("the key was inserted above");
        self.admit(state, now)?;
        let held = self.concurrent.map(|_| (Arc::clone(self), Arc::clone(&state.key)));
        Ok(Permit { held })
    }

    /// Counts a call, unless it exceeds a limit.
    fn admit(&self, state: &mut State, now: Instant) -> Result<(), Busy> {
        if self.concurrent.is_some_and(|limit| state.running >= limit) {
            return Err(Busy { retry_after: RETRY_RUNNING, what: Limit::Concurrency });
        }
        if let Some(rate) = self.rate {
            let ahead = state.regained.saturating_duration_since(now);
            if ahead > rate.head_start() {
                let retry_after = ahead.saturating_sub(rate.head_start());
                return Err(Busy { retry_after, what: Limit::Rate });
            }
            state.regained = state.regained.max(now) + rate.interval;
        }
        state.running += u32::from(self.concurrent.is_some());
        Ok(())
    }

    /// Ends a call.
    fn leave(&self, key: &str) {
        let mut keys = self.lock();
        if let Some(state) = keys.states.get_mut(key) {
            state.running = state.running.saturating_sub(1);
            // With a rate limit, only a sweep removes the key, because the current time is unknown
            // here.
            if state.running == 0 && self.rate.is_none() {
                keys.states.remove(key);
                keys.full_until = None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Keys> {
        // The map is consistent between any two statements, so a panic of another thread leaves it
        // usable.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    /// Makes room for one more key.
    fn make_room(&mut self, now: Instant) -> Result<(), Busy> {
        let busy = |until: Instant| Busy {
            retry_after: until.saturating_duration_since(now),
            what: Limit::Rate,
        };
        if let Some(until) = self.full_until
            && until > now
        {
            return Err(busy(until));
        }
        if self.states.len() < self.sweep_at {
            return Ok(());
        }
        self.states.retain(|_, state| !state.is_at_rest(now));
        self.states.shrink_to(2 * self.states.len());
        self.sweep_at = (2 * self.states.len()).clamp(MIN_SWEEP, MAX_KEYS);
        if self.states.len() < MAX_KEYS {
            return Ok(());
        }
        // Stored, so that rejecting further keys does not cost a sweep each.
        let resting = self.states.values().filter(|state| state.running == 0);
        let until = resting.map(|state| state.regained).min().unwrap_or(now + RETRY_RUNNING);
        self.full_until = Some(until);
        Err(busy(until))
    }
}

/// Permission to run a call. Dropping it ends the call.
#[derive(Debug)]
#[must_use = "dropping the permit ends the call"]
pub(crate) struct Permit {
    /// `None` without a concurrency limit.
    held: Option<(Arc<Throttle>, Arc<str>)>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((throttle, key)) = self.held.take() {
            throttle.leave(&key);
        }
    }
}

/// Rejection of a call by a throttle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// Delay until a retry. For a rate limit it is exact if the key gets no other calls; otherwise
    /// it is a guess.
    pub(crate) retry_after: Duration,
    /// The exceeded limit.
    pub(crate) what: Limit,
}

/// Kind of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Too many calls per time.
    Rate,
    /// Too many concurrent calls.
    Concurrency,
}

impl Limit {
    /// Returns the name of the setting for this limit.
    pub(crate) fn name(self, per_caller: bool) -> &'static str {
        match (self, per_caller) {
            (Self::Rate, false) => "rate_limit",
            (Self::Rate, true) => "rate_limit_per_caller",
            (Self::Concurrency, false) => "max_concurrent",
            (Self::Concurrency, true) => "max_concurrent_per_caller",
        }
    }
}

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.retry_after.as_secs_f64();
        match self.what {
            Limit::Rate => write!(f, "too many calls; retry in {seconds:.1} seconds"),
            Limit::Concurrency => {
                write!(f, "too many concurrent calls; retry in about {seconds:.1} seconds")
            }
        }
    }
}

impl error::Error for Busy {}

#[cfg(test)]
mod tests {
    use super::*;

    fn throttle(rate: Option<RateLimit>, concurrent: Option<u32>) -> Arc<Throttle> {
        Arc::new(Throttle::new(rate, concurrent))
    }

    fn len(throttle: &Throttle) -> usize {
        throttle.lock().states.len()
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn throttle_admits_burst_then_average_rate() {
        let throttle = throttle(Some(RateLimit::per_second(10.0).burst(3)), None);
        let start = Instant::now();
        let enter = |at| throttle.enter("a", start + at).map(drop);
        let busy = |retry_after| Err(Busy { retry_after, what: Limit::Rate });
        for _ in 0..3 {
            assert_eq!(enter(Duration::ZERO), Ok(()));
        }
        assert_eq!(enter(Duration::ZERO), busy(100 * MS));
        assert_eq!(enter(40 * MS), busy(60 * MS));
        assert_eq!(enter(100 * MS), Ok(()), "waiting for the retry delay is enough");
        assert_eq!(enter(100 * MS), busy(100 * MS));
        // A long pause restores one burst, not more.
        for _ in 0..3 {
            assert_eq!(enter(3_600_000 * MS), Ok(()));
        }
        assert_eq!(enter(3_600_000 * MS), busy(100 * MS));
        // A clock that runs backwards neither adds capacity nor fails.
        assert!(enter(Duration::ZERO).is_err());
    }

    #[test]
    fn call_after_retry_delay_is_admitted() {
        for rate in [1e-6, 0.3, 1.0, 7.0, 333.3, 1e9] {
            let throttle = throttle(Some(RateLimit::per_second(rate).burst(2)), None);
            let mut now = Instant::now();
            for _ in 0..100 {
                if let Err(busy) = throttle.enter("a", now).map(drop) {
                    now += busy.retry_after;
                    throttle.enter("a", now).map(drop).unwrap();
                }
            }
        }
    }

    #[test]
    fn concurrent_calls_count_until_permit_drops() {
        let throttle = throttle(None, Some(2));
        let now = Instant::now();
        let first = throttle.enter("a", now).unwrap();
        let _second = throttle.enter("a", now).unwrap();
        let busy = throttle.enter("a", now).unwrap_err();
        assert_eq!(busy, Busy { retry_after: RETRY_RUNNING, what: Limit::Concurrency });
        drop(first);
        let _third = throttle.enter("a", now).unwrap();
        throttle.enter("a", now).unwrap_err();
    }

    #[test]
    fn keys_are_limited_separately() {
        let throttle = throttle(Some(RateLimit::per_second(1.0)), Some(1));
        let now = Instant::now();
        let _a = throttle.enter("a", now).unwrap();
        assert_eq!(throttle.enter("a", now).unwrap_err().what, Limit::Concurrency);
        let _b = throttle.enter("b", now).unwrap();
    }

    #[test]
    fn rejected_call_does_not_count() {
        let throttle = throttle(Some(RateLimit::per_second(1.0).burst(2)), Some(1));
        let now = Instant::now();
        let first = throttle.enter("a", now).unwrap();
        for _ in 0..10 {
            assert_eq!(throttle.enter("a", now).unwrap_err().what, Limit::Concurrency);
        }
        drop(first);
        drop(throttle.enter("a", now).unwrap());
        for _ in 0..10 {
            assert_eq!(throttle.enter("a", now).unwrap_err().retry_after, 1000 * MS);
        }
        drop(throttle.enter("a", now + 1000 * MS).unwrap());
    }

    #[test]
    fn idle_keys_are_dropped() {
        let now = Instant::now();
        let running = throttle(None, Some(1));
        drop(running.enter("a", now).unwrap());
        assert_eq!(len(&running), 0);

        let rated = throttle(Some(RateLimit::per_second(10.0)), Some(1));
        let _busy = rated.enter("busy", now).unwrap();
        for n in 0..100_000 {
            drop(rated.enter(&n.to_string(), now + n * MS).unwrap());
        }
        assert!(len(&rated) < 1000, "{}", len(&rated));
        rated.enter("busy", now + 200_000 * MS).unwrap_err();

        let free = throttle(None, None);
        let _permit = free.enter("a", now).unwrap();
        assert_eq!(len(&free), 0);
    }

    #[test]
    fn new_key_in_full_map_is_rejected_until_a_key_is_idle() {
        let throttle = throttle(Some(RateLimit::per_second(0.1)), None);
        let now = Instant::now();
        for n in 0..MAX_KEYS {
            drop(throttle.enter(&n.to_string(), now).unwrap());
        }
        for _ in 0..1000 {
            let busy = throttle.enter("new", now).unwrap_err();
            assert_eq!(busy, Busy { retry_after: 10_000 * MS, what: Limit::Rate });
        }
        assert_eq!(len(&throttle), MAX_KEYS);
        drop(throttle.enter("new", now + 10_000 * MS).unwrap());
        assert_eq!(len(&throttle), 1);
    }

    #[test]
    fn permit_can_be_dropped_on_any_thread() {
        let throttle = throttle(None, Some(1000));
        let now = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..250 {
                        drop(throttle.enter("a", now).unwrap());
                    }
                });
            }
        });
        assert_eq!(len(&throttle), 0);
    }

    #[test]
    #[should_panic(expected = "not NaN")]
    fn rate_that_is_not_a_number_panics() {
        RateLimit::per_second(f64::NAN);
    }

    #[test]
    fn busy_display_names_retry_delay() {
        let busy = Busy { retry_after: 1250 * MS, what: Limit::Rate };
        assert_eq!(busy.to_string(), "too many calls; retry in 1.2 seconds");
    }
}

//! Limits how often and how many at once: per tool, per caller, or per whatever the key names.
//!
//! There is no clock in here and nothing waits: whoever asks brings the time along and is let in or
//! told when to come again. A key costs memory only while it matters. One that is at rest, with
//! nothing running and its burst regained, is the same as one that was never seen, and is dropped.

use std::{
    collections::HashMap,
    error, fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How many keys may be out of rest at once; a new one beyond that is refused. About two megabytes.
/// To get there a caller needs as many identities, all of them busy, which is load to be shed.
const MAX_KEYS: usize = 16_384;

/// How many keys there are at least before those at rest are looked for.
const MIN_SWEEP: usize = 64;

/// When to come again if too many calls are running. Nobody knows when one of them ends; a second
/// is short for a person and long for a machine.
const RETRY_RUNNING: Duration = Duration::from_secs(1);

/// How often something may happen: so many times a second on average, and so many at once.
///
/// `RateLimit::per_second(10.0).burst(20)` is ten a second, and after a pause up to twenty without
/// waiting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateLimit {
    /// The time that one call uses up.
    interval: Duration,
    burst: u32,
}

impl RateLimit {
    /// So many times a second on average, and as many at once, but at least one.
    ///
    /// # Panics
    ///
    /// If the rate is not a number from 0.000001 (one in twelve days) to 1000000000.
    pub fn per_second(rate: f64) -> Self {
        assert!(
            (1e-6..=1e9).contains(&rate),
            "a rate limit is a number from 1e-6 to 1e9 a second, not {rate}; for no limit set none"
        );
        let burst = rate.ceil().min(f64::from(u32::MAX)) as u32;
        Self { interval: Duration::from_secs_f64(rate.recip()), burst }
    }

    /// So many at once, after a pause.
    ///
    /// # Panics
    ///
    /// If it is 0, which would refuse every call.
    #[must_use]
    pub fn burst(self, burst: u32) -> Self {
        assert!(burst > 0, "a burst of 0 refuses every call; make it at least 1");
        Self { burst, ..self }
    }

    /// How far the calls of a key may run ahead of the average.
    fn head_start(self) -> Duration {
        self.interval.saturating_mul(self.burst - 1)
    }
}

/// Lets calls in, or not.
#[derive(Debug)]
pub(crate) struct Throttle {
    rate: Option<RateLimit>,
    concurrent: Option<u32>,
    // A std mutex: nothing awaits while it is held, and it is held for a look into a map. Sweeping
    // takes longer, but at most once per doubling of the map.
    keys: Mutex<Keys>,
}

#[derive(Debug)]
struct Keys {
    states: HashMap<Arc<str>, State>,
    /// The number of keys at which those at rest are dropped.
    sweep_at: usize,
    /// Until when the map is known to be full of keys that are not at rest.
    full_until: Option<Instant>,
}

/// A key that is not at rest.
#[derive(Debug)]
struct State {
    /// Its own name, for permits to share.
    key: Arc<str>,
    /// When the whole burst is regained. This one time is the state of the token bucket: each call
    /// puts it off by one interval, and it must not run too far ahead of now.
    regained: Instant,
    running: u32,
}

impl State {
    fn is_at_rest(&self, now: Instant) -> bool {
        self.running == 0 && self.regained <= now
    }
}

impl Throttle {
    /// A throttle with a limit of either kind, of both, or of none.
    ///
    /// # Panics
    ///
    /// If `concurrent` is 0, which would refuse every call.
    pub(crate) fn new(rate: Option<RateLimit>, concurrent: Option<u32>) -> Self {
        assert!(concurrent != Some(0), "a limit of 0 calls at once refuses every call; set none");
        let keys = Keys { states: HashMap::new(), sweep_at: MIN_SWEEP, full_until: None };
        Self { rate, concurrent, keys: Mutex::new(keys) }
    }

    /// Lets a call in until the permit is dropped. A refused call uses nothing up.
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
        let state = keys.states.get_mut(key).expect("if it was not there, it is now");
        self.admit(state, now)?;
        let held = self.concurrent.map(|_| (Arc::clone(self), Arc::clone(&state.key)));
        Ok(Permit { held })
    }

    /// Counts a call, unless a limit is reached.
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
            // With a rate, only a sweep can tell: there is no time to compare with here.
            if state.running == 0 && self.rate.is_none() {
                keys.states.remove(key);
                keys.full_until = None;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Keys> {
        // The map is whole between any two statements, so a panic elsewhere does not spoil it.
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    /// Makes sure that one more key fits.
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
        // Remembered, so that refusing the next ones does not cost a sweep each.
        let resting = self.states.values().filter(|state| state.running == 0);
        let until = resting.map(|state| state.regained).min().unwrap_or(now + RETRY_RUNNING);
        self.full_until = Some(until);
        Err(busy(until))
    }
}

/// The right to run. Dropping it ends the call.
#[derive(Debug)]
#[must_use = "a call that drops its permit at once does not count as running"]
pub(crate) struct Permit {
    /// Nothing, if calls at once are not limited.
    held: Option<(Arc<Throttle>, Arc<str>)>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some((throttle, key)) = self.held.take() {
            throttle.leave(&key);
        }
    }
}

/// A call was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy {
    /// When it may be tried again; certain for a rate if nobody else calls, a guess otherwise.
    pub(crate) retry_after: Duration,
    /// What it ran into.
    pub(crate) what: Limit,
}

/// The two kinds of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Too many calls in too little time.
    Rate,
    /// Too many calls at once.
    Concurrency,
}

impl Limit {
    /// What the limit of a tool, or of all tools, is called where it is set.
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
            Limit::Rate => write!(f, "too many calls; try again in {seconds:.1} seconds"),
            Limit::Concurrency => {
                write!(f, "too many calls are running; try again in about {seconds:.1} seconds")
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
    fn a_burst_is_let_in_and_then_the_average() {
        let throttle = throttle(Some(RateLimit::per_second(10.0).burst(3)), None);
        let start = Instant::now();
        let enter = |at| throttle.enter("a", start + at).map(drop);
        let busy = |retry_after| Err(Busy { retry_after, what: Limit::Rate });
        for _ in 0..3 {
            assert_eq!(enter(Duration::ZERO), Ok(()));
        }
        assert_eq!(enter(Duration::ZERO), busy(100 * MS));
        assert_eq!(enter(40 * MS), busy(60 * MS));
        assert_eq!(enter(100 * MS), Ok(()), "waiting as told is enough");
        assert_eq!(enter(100 * MS), busy(100 * MS));
        // After a long pause there is one burst, not more.
        for _ in 0..3 {
            assert_eq!(enter(3_600_000 * MS), Ok(()));
        }
        assert_eq!(enter(3_600_000 * MS), busy(100 * MS));
        // Time that goes backwards gives nothing and breaks nothing.
        assert!(enter(Duration::ZERO).is_err());
    }

    #[test]
    fn waiting_as_told_is_always_enough() {
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
    fn calls_at_once_are_counted_until_their_permits_drop() {
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
    fn keys_do_not_know_each_other() {
        let throttle = throttle(Some(RateLimit::per_second(1.0)), Some(1));
        let now = Instant::now();
        let _a = throttle.enter("a", now).unwrap();
        assert_eq!(throttle.enter("a", now).unwrap_err().what, Limit::Concurrency);
        let _b = throttle.enter("b", now).unwrap();
    }

    #[test]
    fn a_refused_call_uses_nothing_up() {
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
    fn keys_at_rest_are_dropped() {
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
    fn too_many_keys_are_refused_until_some_are_at_rest() {
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
    fn permits_may_be_dropped_anywhere() {
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
    fn a_rate_is_a_number() {
        RateLimit::per_second(f64::NAN);
    }

    #[test]
    fn a_refusal_says_when_to_come_again() {
        let busy = Busy { retry_after: 1250 * MS, what: Limit::Rate };
        assert_eq!(busy.to_string(), "too many calls; try again in 1.2 seconds");
    }
}

//! Rate limit for warnings that clients can trigger: each is logged once a minute, with a count.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Minimum time between two log entries of a warning.
const INTERVAL: Duration = Duration::from_secs(60);

/// Counter for one kind of warning.
#[derive(Debug, Default)]
pub(crate) struct Warnings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    logged: Option<Instant>,
    count: u64,
}

impl Warnings {
    /// Counts a warning. If a log entry is due, returns the number of warnings since the last one.
    pub(crate) fn count(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        let is_due = state.logged.is_none_or(|logged| now.duration_since(logged) >= INTERVAL);
        is_due.then(|| {
            state.logged = Some(now);
            std::mem::take(&mut state.count)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Warnings;

    #[test]
    fn frequent_warnings_are_logged_once_a_minute_with_a_count() {
        let warnings = Warnings::default();
        let start = Instant::now();
        let mut logged = Vec::new();
        for millis in (0..150_000).step_by(10) {
            logged.extend(warnings.count(start + Duration::from_millis(millis)));
        }
        assert_eq!(logged, [1, 6_000, 6_000]);
    }
}

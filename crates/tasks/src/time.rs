//! Wall-clock time and durations in milliseconds.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Returns the milliseconds since 1970.
pub(crate) fn wall_clock() -> u64 {
    millis(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns a duration in milliseconds, at most `u64::MAX`.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

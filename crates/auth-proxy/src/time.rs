//! Time in seconds since 1970, as tokens have it.

use std::time::UNIX_EPOCH;

use outlive_protocol::Clock;

/// Seconds since 1970.
pub(super) fn seconds(clock: &dyn Clock) -> i64 {
    let since = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

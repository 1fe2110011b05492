//! Time in Unix seconds, as in tokens.

use std::time::UNIX_EPOCH;

use outlive_protocol::Clock;

/// Returns the time in Unix seconds.
pub(super) fn seconds(clock: &dyn Clock) -> i64 {
    let since = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

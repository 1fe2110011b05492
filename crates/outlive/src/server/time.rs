//! Timestamps in milliseconds, as the protocol and the stores use them.

use std::time::{Duration, UNIX_EPOCH};

use outlive_protocol::{Clock, Profile};

/// Maximum clock difference between replicas.
pub(crate) const SKEW: Duration = Duration::from_secs(30);

/// Returns the milliseconds of a duration.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the milliseconds since the Unix epoch.
pub(crate) fn now(profile: &Profile) -> u64 {
    wall_millis(&*profile.clock)
}

/// Returns the milliseconds since the Unix epoch on a clock.
pub(crate) fn wall_millis(clock: &dyn Clock) -> u64 {
    clock.wall().duration_since(UNIX_EPOCH).map_or(0, millis)
}

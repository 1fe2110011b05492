//! Times as the protocol and the stores write them: milliseconds.

use std::time::{Duration, UNIX_EPOCH};

use outlive_protocol::Profile;

/// How far the clocks of replicas may differ.
pub(crate) const SKEW: Duration = Duration::from_secs(30);

/// Returns the milliseconds of a duration.
pub(crate) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the milliseconds since 1970.
pub(crate) fn now(profile: &Profile) -> u64 {
    profile.clock.wall().duration_since(UNIX_EPOCH).map_or(0, millis)
}

//! The wait of one request.

use std::time::Duration;

/// Shortest slice. A shorter one would return a pending result before most runs are promoted.
const MIN_SLICE: Duration = Duration::from_secs(2);

/// Returns the slice of a client with this call timeout: the longest wait of one request.
///
/// The slice is 0.85 of the timeout, minus one second, at least two seconds. The difference covers
/// the way of the response through proxies and busy machines.
pub(crate) fn slice(call_timeout: Duration) -> Duration {
    (call_timeout * 17 / 20).saturating_sub(Duration::from_secs(1)).max(MIN_SLICE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::slice;

    #[test]
    fn slice_of_call_timeout_leaves_time_for_response() {
        for (timeout, expected) in [(60_000, 50_000), (5_000, 3_250), (3_000, 2_000), (0, 2_000)] {
            let timeout = Duration::from_millis(timeout);
            assert_eq!(slice(timeout), Duration::from_millis(expected), "{timeout:?}");
        }
    }
}

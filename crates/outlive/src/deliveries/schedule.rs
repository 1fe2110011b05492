//! Times of the attempts of a delivery.

use std::time::Duration;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Delays after the failed attempts, in seconds. A delivery whose last attempt failed is dead.
const DELAYS: [u64; 9] =
    [5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR];

/// Longest delay that a receiver can request.
const MAX_REQUESTED: Duration = Duration::from_secs(86_400);

/// Returns the delay after a failed attempt; `None` if it was the last one.
///
/// The delay varies by a fifth, so that the messages of an outage do not arrive at the same time.
/// `requested` is the delay that the receiver asked for: it never shortens the schedule.
pub(super) fn delay_after(
    attempt: u32,
    requested: Option<Duration>,
    random: u32,
) -> Option<Duration> {
    let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    let planned = Duration::from_secs(*DELAYS.get(index)?) * (80 + random % 41) / 100;
    Some(requested.map_or(planned, |requested| planned.max(requested.min(MAX_REQUESTED))))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{DELAYS, HOUR, delay_after};

    #[test]
    fn delay_grows_and_varies_by_a_fifth() {
        for (attempt, seconds) in (1_u32..).zip(DELAYS) {
            for random in [0, 20, 40, 41, u32::MAX] {
                let delay = delay_after(attempt, None, random).unwrap().as_secs_f64();
                let seconds = seconds as f64;
                assert!((0.8 * seconds..=1.2 * seconds).contains(&delay), "{attempt}: {delay}");
            }
        }
        assert_eq!(delay_after(1, None, 20), Some(Duration::from_secs(5)));
        assert_eq!(DELAYS[8], 24 * HOUR);
    }

    #[test]
    fn delivery_is_dead_after_ten_attempts() {
        assert!(delay_after(9, None, 0).is_some());
        assert_eq!(delay_after(10, None, 0), None);
        assert_eq!(delay_after(10, Some(Duration::from_secs(1)), 0), None);
        assert_eq!(delay_after(u32::MAX, None, 0), None);
    }

    #[test]
    fn requested_delay_extends_the_schedule_and_never_shortens_it() {
        let requested = |seconds| delay_after(1, Some(Duration::from_secs(seconds)), 20).unwrap();
        assert_eq!(requested(1), Duration::from_secs(5));
        assert_eq!(requested(120), Duration::from_secs(120));
        assert_eq!(requested(u64::MAX), Duration::from_secs(86_400));
    }
}

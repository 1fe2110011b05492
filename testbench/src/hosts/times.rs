//! The times of a long call: real, divided by ten, and shorter still.

use std::time::Duration;

/// Times of the tool, the client and the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// Timeout of a request of the client; the server knows it as `call_timeout`.
    pub(super) timeout: Duration,
    /// Duration of the tool where the number of calls does not depend on the slice.
    pub(super) tool: Duration,
    /// Time until a call becomes a task.
    pub(super) task_after: Duration,
}

/// A ten-minute tool and a timeout of 60 s.
pub(super) const REAL: Times = Times {
    timeout: Duration::from_secs(60),
    tool: Duration::from_secs(600),
    task_after: Duration::from_secs(2),
};

/// The real times divided by ten.
pub(super) const TENTH: Times = Times {
    timeout: Duration::from_secs(6),
    tool: Duration::from_secs(60),
    task_after: Duration::from_millis(200),
};

/// Times of a short run. The slice of a shorter timeout would be longer than the timeout allows.
pub(super) const SHORT: Times = Times {
    timeout: Duration::from_secs(4),
    tool: Duration::from_millis(28_800),
    task_after: Duration::from_millis(200),
};

/// Slices of a ten-minute tool at a timeout of 60 s.
const SLICES: u32 = 12;

impl Times {
    /// Duration of the tool where every slice is a call. It has as many slices as a ten-minute tool
    /// at real times: a slice has a fixed part of one second, which is not divided.
    pub(super) fn tool_in_slices(&self) -> Duration {
        self.slice() * SLICES
    }

    /// The longest wait of one request, as the server computes it.
    fn slice(&self) -> Duration {
        let slice = self.timeout.mul_f64(0.85).saturating_sub(Duration::from_secs(1));
        slice.max(Duration::from_secs(2))
    }
}

/// A duration in seconds, as in a heading or a configuration.
pub(super) fn seconds(time: Duration) -> String {
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}

#[cfg(test)]
mod tests {
    use super::{Duration, REAL, SHORT, TENTH, seconds};

    #[test]
    fn tool_of_real_times_takes_ten_minutes_in_slices() {
        assert_eq!(REAL.tool_in_slices(), REAL.tool);
        assert_eq!(TENTH.tool_in_slices(), Duration::from_millis(49_200));
        assert_eq!(SHORT.tool_in_slices(), SHORT.tool);
    }

    #[test]
    fn seconds_have_at_most_one_decimal() {
        assert_eq!(seconds(Duration::from_millis(28_800)), "28.8 s");
        assert_eq!(seconds(Duration::from_secs(600)), "600 s");
    }
}

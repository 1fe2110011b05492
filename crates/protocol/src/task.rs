//! The state of a task, independent of the era.

use outlive_wire::{CallToolResult, ErrorObject, InputRequests};

use crate::Progress;

/// The state of a task at one moment.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "the server builds it, and the codecs read it")]
pub struct TaskView {
    /// Task ID.
    pub id: String,
    /// Creation time, in Unix milliseconds.
    pub created: u64,
    /// Time of the last change, in Unix milliseconds.
    pub updated: u64,
    /// TTL in milliseconds from the creation; `None` if the task never expires.
    pub ttl: Option<u64>,
    /// Recommended poll interval in milliseconds.
    pub poll: u64,
    /// Status message.
    pub message: Option<String>,
    /// Progress, for clients with the extension for it.
    pub progress: Option<Progress>,
    /// Text for the model while the task runs. Sent when the task is created.
    pub immediate: Option<String>,
    /// Whether the server supports none of the requested response modes and fell back to a task.
    /// Sent when the task is created.
    pub fell_back: bool,
    /// Status, with its details.
    pub state: TaskState,
}

/// Status of a task, with its details. The eras encode it differently.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum TaskState {
    /// The task is queued or runs.
    Working,
    /// The task waits for responses to these input requests.
    InputRequired(InputRequests),
    /// The task ended with the result of the call.
    Result(Box<CallToolResult>),
    /// The task ended with a protocol error.
    Error(ErrorObject),
    /// The task was cancelled.
    Cancelled,
    /// The TTL of the task expired.
    Expired,
}

impl TaskState {
    /// Returns whether the state never changes again.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired(_))
    }
}

/// Formats Unix milliseconds as RFC 3339, in UTC with milliseconds.
pub fn rfc3339(millis: u64) -> String {
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    let (seconds, fraction) = (rest / 1000 % 60, rest % 1000);
    if year > 9_999 {
        return format!(
            "{year}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{fraction:03}Z"
        );
    }
    // Formatted by hand: every response about a task has two timestamps, and `format!` dominated
    // its cost.
    let mut text = *b"0000-00-00T00:00:00.000Z";
    for (end, digits, number) in [
        (4, 4, year),
        (7, 2, month),
        (10, 2, day),
        (13, 2, hours),
        (16, 2, minutes),
        (19, 2, seconds),
        (23, 3, fraction),
    ] {
        put_digits(&mut text[end - digits..end], number);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Writes the last decimal digits of a number.
fn put_digits(places: &mut [u8], mut number: u64) {
    for place in places.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Returns the date for a number of days since 1970-01-01. The algorithm uses years that start in
/// March, so that the leap day is the last day.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn timestamp_is_formatted_in_utc() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (1_785_196_800_123, "2026-07-28T00:00:00.123Z"),
            (4_102_444_799_000, "2099-12-31T23:59:59.000Z"),
            (253_402_300_800_000, "10000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(millis), text);
        }
    }
}

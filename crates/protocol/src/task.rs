//! A task as clients see it, before an era has shaped it.

use outlive_wire::{CallToolResult, ErrorObject, InputRequests};

use crate::Progress;

/// A task at one moment.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "built by the server, read by the eras, both ours")]
pub struct TaskView {
    /// Its name.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// When it last changed.
    pub updated: u64,
    /// How long it exists, in milliseconds from its creation; `None` for ever.
    pub ttl: Option<u64>,
    /// How often it is worth looking, in milliseconds.
    pub poll: u64,
    /// What it is doing, in words.
    pub message: Option<String>,
    /// How far it said it was, for those who have words for that.
    pub progress: Option<Progress>,
    /// What the model may be told while it runs; said when it is made, where there are words for it.
    pub immediate: Option<String>,
    /// Whether the caller wanted none of the ways in which the call could be answered, and so gets
    /// a task; said when it is made.
    pub fell_back: bool,
    /// How far it is.
    pub state: TaskState,
}

/// How far a task is. The eras have different words for the same.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the state machine")]
pub enum TaskState {
    /// At work, or waiting for a worker.
    Working,
    /// Waits for these answers.
    InputRequired(InputRequests),
    /// Over, with what the call would have returned.
    Result(Box<CallToolResult>),
    /// Over, with the refusal that the call would have met.
    Error(ErrorObject),
    /// Cancelled.
    Cancelled,
    /// Its time was over.
    Expired,
}

impl TaskState {
    /// Whether it will never change again.
    pub fn is_terminal(&self) -> bool {
        !matches!(self, Self::Working | Self::InputRequired(_))
    }
}

/// A moment, in milliseconds since 1970, as RFC 3339 has it: with milliseconds, in UTC.
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
    // By hand: each response about a task has two of these, and formatting is most of it otherwise.
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

/// Writes the last digits of a number.
fn put_digits(places: &mut [u8], mut number: u64) {
    for place in places.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The date so many days after 1970-01-01. Counted in years that begin in March, so that the leap
/// day is the last of its year.
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
    fn moments_are_written_in_utc() {
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

//! Times and durations as text. `console.js` has the same rules for the time zone of the browser.

use std::time::Duration;

use outlive::store::UnixMillis;

const DAY: u64 = 86_400_000;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Returns a time span in its largest unit, as in `4 min`.
pub(crate) fn span(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Returns a measured duration, as in `812 ms` or `1.2 s`.
pub(crate) fn duration(duration: Duration) -> String {
    match u64::try_from(duration.as_millis()).unwrap_or(u64::MAX) {
        millis @ 0..1_000 => format!("{millis} ms"),
        millis @ 1_000..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        millis => span(millis),
    }
}

/// Returns a time in RFC 3339 to the second, in UTC.
pub(crate) fn rfc3339(at: UnixMillis) -> String {
    let (year, month, day) = date(at);
    let (hour, minute, second) = time_of_day(at);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Returns a time to the second, as in `18 Nov 2026 05:43:09 UTC`.
pub(crate) fn exact(at: UnixMillis) -> String {
    let (year, month, day) = date(at);
    let (hour, minute, second) = time_of_day(at);
    let month = MONTHS[month - 1];
    format!("{day} {month} {year} {hour:02}:{minute:02}:{second:02} UTC")
}

/// Returns the time of day, with the date unless it is that of `now`: `12 Oct 14:02 UTC`.
pub(crate) fn clock(at: UnixMillis, now: UnixMillis) -> String {
    let (_, month, day) = date(at);
    let (hour, minute, _) = time_of_day(at);
    match at / DAY == now / DAY {
        true => format!("{hour:02}:{minute:02} UTC"),
        false => format!("{day} {} {hour:02}:{minute:02} UTC", MONTHS[month - 1]),
    }
}

/// Returns the time of day to the second, as in `10:31:07`.
pub(crate) fn second(at: UnixMillis) -> String {
    let (hour, minute, second) = time_of_day(at);
    format!("{hour:02}:{minute:02}:{second:02}")
}

/// Returns a number with a comma between groups of digits.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Returns a number of things, as in `1 vote` and `2 votes`.
pub(crate) fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", self::number(number))
}

fn time_of_day(at: UnixMillis) -> (u64, u64, u64) {
    let seconds = at % DAY / 1_000;
    (seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

/// Returns year, month and day. Counts in years from March, so that the leap day is the last day.
fn date(at: UnixMillis) -> (u64, usize, u64) {
    let days = at / DAY + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, usize::try_from(month).unwrap_or(1), day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{clock, count, duration, exact, number, rfc3339, second, span};

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (at, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59Z"),
            (1_794_980_589_007, "2026-11-18T05:43:09Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(at), text);
        }
        assert_eq!(exact(1_794_980_589_000), "18 Nov 2026 05:43:09 UTC");
        assert_eq!(second(1_794_980_589_000), "05:43:09");
    }

    #[test]
    fn clock_has_the_date_of_another_day_only() {
        let now = 1_794_980_589_000;
        assert_eq!(clock(now, now), "05:43 UTC");
        assert_eq!(clock(now - 86_400_000, now), "17 Nov 05:43 UTC");
    }

    #[test]
    fn spans_have_one_unit() {
        for (millis, text) in [
            (999, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3_599_999, "59 min"),
            (3_600_000, "1 h"),
            (172_799_999, "47 h"),
            (172_800_000, "2 d"),
        ] {
            assert_eq!(span(millis), text);
        }
        for (millis, text) in
            [(812, "812 ms"), (1_249, "1.2 s"), (9_999, "9.9 s"), (10_000, "10 s")]
        {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn numbers_have_groups_of_three_digits() {
        for (value, text) in [(0, "0"), (999, "999"), (1_204, "1,204"), (1_000_000, "1,000,000")] {
            assert_eq!(number(value), text);
        }
        assert_eq!(
            (count(1, "vote"), count(1_200, "vote")),
            ("1 vote".into(), "1,200 votes".into())
        );
    }
}

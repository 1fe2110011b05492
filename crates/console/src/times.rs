//! Times in addresses and JSON: RFC 3339.

use outlive::store::UnixMillis;

use crate::time_text::rfc3339;

const MINUTE: u64 = 60_000;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Returns a time as RFC 3339, with milliseconds.
pub(crate) fn text(at: UnixMillis) -> String {
    format!("{}.{:03}Z", rfc3339(at).trim_end_matches('Z'), at % 1_000)
}

/// Returns the time that a text names: RFC 3339, a date, or a span before `now` such as `24h`. A time
/// without a time zone is UTC.
pub(crate) fn parse(text: &str, now: UnixMillis) -> Option<UnixMillis> {
    span(text).map(|span| now.saturating_sub(span)).or_else(|| instant(text))
}

/// Returns the milliseconds of a span such as `30m`, `24h` or `7d`.
pub(crate) fn span(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "s" => 1_000,
        "m" => MINUTE,
        "h" => HOUR,
        "d" => DAY,
        _ => return None,
    };
    digits(number)?.checked_mul(unit)
}

fn instant(text: &str) -> Option<UnixMillis> {
    let (date, time) = match text.split_once(['T', 't', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let days = days(date)?;
    let (of_day, offset) = time.map_or(Some((0, 0)), time_of_day)?;
    let millis = i64::try_from(days * DAY + of_day).ok()?.checked_sub(offset)?;
    UnixMillis::try_from(millis).ok()
}

/// Returns the milliseconds since midnight, and those that the time zone is ahead of UTC.
fn time_of_day(text: &str) -> Option<(u64, i64)> {
    let zone_at = text.find(['Z', 'z', '+', '-']).unwrap_or(text.len());
    let (time, zone) = text.split_at(zone_at);
    let mut parts = time.split(':');
    let (hours, minutes) = (digits(parts.next()?)?, digits(parts.next()?)?);
    let (seconds, fraction) = match parts.next() {
        None => (0, 0),
        Some(seconds) => match seconds.split_once('.') {
            Some((seconds, fraction)) => (digits(seconds)?, thousandths(fraction)?),
            None => (digits(seconds)?, 0),
        },
    };
    let is_valid = parts.next().is_none() && hours < 24 && minutes < 60 && seconds < 61;
    let millis = hours * HOUR + minutes * MINUTE + seconds * 1_000 + fraction;
    is_valid.then_some((millis, offset(zone)?))
}

fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.as_bytes().first() {
        None | Some(b'Z' | b'z') => return (zone.len() <= 1).then_some(0),
        Some(b'-') => -1,
        Some(_) => 1,
    };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    let millis = i64::try_from(hours * HOUR + minutes * MINUTE).ok()?;
    (hours < 24 && minutes < 60).then_some(sign * millis)
}

/// Returns the days from 1970-01-01 to a date. Years start in March, so that the leap day is last.
fn days(date: &str) -> Option<u64> {
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || [year.len(), month.len(), day.len()] != [4, 2, 2] {
        return None;
    }
    let (year, month, day) = (digits(year)?, digits(month)?, digits(day)?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 => 28 + u64::from(is_leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    };
    if year < 1970 || day == 0 || day > last {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
    Some(days - 719_468)
}

/// Returns the milliseconds of a fraction of a second.
fn thousandths(fraction: &str) -> Option<u64> {
    digits(fraction)?;
    let padded: String = fraction.chars().chain("00".chars()).take(3).collect();
    digits(&padded)
}

/// Returns a number of at most nine digits.
fn digits(text: &str) -> Option<u64> {
    let is_number = (1..=9).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::{DAY, HOUR, parse, span, text};

    #[test]
    fn formatted_time_is_parsed_to_itself() {
        for at in [0, 1, 951_782_399_999, 951_782_400_000, 1_709_251_200_000, 1_785_196_800_123] {
            assert_eq!(parse(&text(at), 0), Some(at));
        }
    }

    #[test]
    fn times_in_other_forms_are_parsed() {
        let noon = 1_785_240_000_000;
        for text in [
            "2026-07-28T12:00:00Z",
            "2026-07-28T12:00",
            "2026-07-28 12:00:00.0",
            "2026-07-28T14:00:00+02:00",
            "2026-07-28T06:30:00-05:30",
        ] {
            assert_eq!(parse(text, 0), Some(noon), "{text}");
        }
        assert_eq!(parse("2026-07-28", 0), Some(noon - 12 * HOUR));
        assert_eq!(parse("24h", noon), Some(noon - DAY));
        assert_eq!((span("30m"), span("7d"), span("2")), (Some(1_800_000), Some(7 * DAY), None));
    }

    #[test]
    fn text_without_valid_time_is_rejected() {
        for text in [
            "",
            "h",
            "now",
            "-1h",
            "2026-7-28",
            "2026-02-29",
            "2026-13-01",
            "2026-07-28T25:00",
            "2026-07-28T12:00Zx",
            "2026-07-28T12:00+2",
            "1969-12-31",
            "2026-07-28T12:00:00.",
            "99999999999d",
            "é",
        ] {
            assert_eq!(parse(text, 0), None, "{text}");
        }
    }
}

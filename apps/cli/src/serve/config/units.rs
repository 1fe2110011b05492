//! Durations and byte sizes with units: `90s`, `1h 30m`, `64 KiB`.

use std::time::Duration;

use serde_json::json;

use super::reader::{Read, Result, Value};

/// A duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

impl Read for Span {
    fn read(value: Value<'_>) -> Result<Self> {
        let unfit = value.unfit("a duration such as \"90s\", \"1h 30m\" or \"7d\"");
        if !value.is_string() {
            return Err(unfit);
        }
        span(&String::read(value)?).map(Self).ok_or(unfit)
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": SPAN, "examples": ["250ms", "90s", "1h 30m", "7d"]})
    }
}

/// Pattern of durations, for editors.
const SPAN: &str =
    "^\\s*([0-9]+\\s*(ms|s|sec|seconds?|m|min|minutes?|h|hours?|d|days?|w|weeks?)\\s*)+$";

/// A size in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes(pub(crate) u64);

impl Bytes {
    pub(crate) fn size(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl Read for Bytes {
    fn read(value: Value<'_>) -> Result<Self> {
        let unfit = value.unfit("a size such as \"64 KiB\" or \"10 MB\"");
        if !value.is_string() {
            return Err(unfit);
        }
        bytes(&String::read(value)?).map(Self).ok_or(unfit)
    }

    fn schema() -> serde_json::Value {
        json!({"type": "string", "pattern": BYTES, "examples": ["64 KiB", "10 MB"]})
    }
}

/// Pattern of sizes, for editors.
const BYTES: &str = "^\\s*[0-9]+\\s*(B|[kKMG]B|[KMG]iB)\\s*$";

/// Parses one or more numbers with units. Rejects zero.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut span = Duration::ZERO;
    while !rest.is_empty() {
        let (number, unit, after) = number_and_unit(rest)?;
        let seconds = match unit {
            "ms" => {
                span = span.checked_add(Duration::from_millis(number))?;
                rest = after;
                continue;
            }
            "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 7 * 86_400,
            _ => return None,
        };
        span = span.checked_add(Duration::from_secs(number.checked_mul(seconds)?))?;
        rest = after;
    }
    (span > Duration::ZERO).then_some(span)
}

fn bytes(text: &str) -> Option<u64> {
    let (number, unit, rest) = number_and_unit(text.trim())?;
    let unit = match unit {
        "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit).filter(|bytes| *bytes > 0 && rest.is_empty())
}

fn number_and_unit(text: &str) -> Option<(u64, &str, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    let rest = rest.trim_start();
    let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
    let (unit, rest) = rest.split_at(letters);
    Some((number.parse().ok()?, unit, rest.trim_start()))
}

/// Formats a duration in its largest exact unit.
pub(crate) fn in_words(span: Duration) -> String {
    let seconds = span.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    match units.iter().find(|(unit, _)| seconds >= *unit && seconds.is_multiple_of(*unit)) {
        Some((unit, name)) if span.subsec_millis() == 0 => format!("{}{name}", seconds / unit),
        _ => format!("{}ms", span.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes, in_words, span};

    #[test]
    fn span_with_units_is_parsed() {
        for (text, seconds) in [
            ("90s", 90),
            ("1h 30m", 5_400),
            ("1h30m", 5_400),
            (" 2 days ", 172_800),
            ("1w", 604_800),
        ] {
            assert_eq!(span(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(span("250ms"), Some(Duration::from_millis(250)));
        for text in ["", "0s", "90", "s", "-1s", "1y", "1.5h", "99999999999999999999s", "1h,2m"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    #[test]
    fn bytes_with_unit_are_parsed() {
        assert_eq!(bytes("64 KiB"), Some(65_536));
        assert_eq!(bytes("10MB"), Some(10_000_000));
        for text in ["", "64", "KiB", "0 B", "1 KiB 2", "1 Mib", "99999999999 GiB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }

    #[test]
    fn formatted_span_parses_to_same_duration() {
        for seconds in [1, 59, 60, 90, 3_600, 86_400, 90_000] {
            let time = Duration::from_secs(seconds);
            assert_eq!(span(&in_words(time)), Some(time));
        }
    }
}

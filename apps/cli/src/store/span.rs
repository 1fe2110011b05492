//! Parser for durations with a unit.

use crate::error::Result;
use std::time::Duration;

/// Parses a duration: `90s`, `15m`, `36h`, `30d`.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let wrong = || format!("invalid duration `{text}`; write 90s, 15m, 36h or 30d");
    let digits = text.find(|one: char| !one.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..digits].parse().map_err(|_| wrong())?;
    let seconds = match text[digits..].trim_start() {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return Err(wrong()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::span;

    #[test]
    fn span_requires_number_and_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("36 h", 129_600), ("30d", 2_592_000)] {
            assert_eq!(span(text), Ok(Duration::from_secs(seconds)));
        }
        for text in ["", "5", "m", "-1d", "1.5h", "1y", "99999999999999999999d"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}

//! Parser for duration arguments.

use std::time::Duration;

/// Parses a duration: seconds, or a number with a unit.
pub(crate) fn span(text: &str) -> std::result::Result<Duration, String> {
    let (number, unit) = match text.find(|char: char| char.is_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(format!("unknown unit `{unit}`; use ms, s, m, h or d")),
    };
    let number: f64 = number.parse().map_err(|_| "write 30, 30s, 5m, 2h or 1d".to_owned())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::span;

    #[test]
    fn span_with_unit_parses_duration() {
        assert_eq!(span("30"), Ok(Duration::from_secs(30)));
        assert_eq!(span("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(span("250ms"), Ok(Duration::from_millis(250)));
        assert!(span("3 weeks").is_err() && span("-1s").is_err() && span("").is_err());
    }
}

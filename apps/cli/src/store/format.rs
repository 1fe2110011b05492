//! Formats tasks and times as text, with control characters escaped.

use std::{
    fmt::Write,
    time::{SystemTime, UNIX_EPOCH},
};

use outlive::store::{Phase, TaskOutcome, TaskSummary, UnixMillis};

/// Returns the current time of this machine in Unix milliseconds.
pub(crate) fn wall_clock() -> UnixMillis {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Returns the state of a task in one word.
pub(super) fn state(task: &TaskSummary) -> &'static str {
    match (task.view.phase, &task.view.outcome) {
        (Phase::Queued, _) => "queued",
        (Phase::Running, _) => "running",
        (Phase::Parked, _) if !task.view.input_requests.is_empty() => "input-required",
        (Phase::Parked, _) => "waiting",
        (Phase::Quarantined, _) => "quarantined",
        (Phase::Ended, Some(outcome)) => outcome_word(outcome),
        (Phase::Ended, None) => "ended",
    }
}

/// Returns how a task ended in one word. Returns `None` if it has not ended.
pub(crate) fn end_of(task: &TaskSummary) -> Option<&'static str> {
    (task.view.phase == Phase::Ended).then(|| state(task))
}

pub(super) fn outcome_word(outcome: &TaskOutcome) -> &'static str {
    outcome.kind().as_str()
}

pub(super) fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued => "queued",
        Phase::Running => "running",
        Phase::Parked => "parked",
        Phase::Quarantined => "quarantined",
        Phase::Ended => "ended",
    }
}

/// Escapes text from a peer and joins it into one line.
pub(crate) fn plain(text: &str) -> String {
    outlive::text::line(text).into_owned()
}

/// Truncates a text to at most `most` characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
            short.push('…');
            short
        }
    }
}

/// Formats a duration in one unit.
pub(crate) fn rough(millis: u64) -> String {
    let seconds = millis / 1_000;
    match seconds {
        0 => format!("{millis} ms"),
        1..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Formats a time, both relative to now and absolute.
pub(super) fn when(at: UnixMillis, now: UnixMillis) -> String {
    let relative = match at > now {
        true => format!("in {}", rough(at - now)),
        false => format!("{} ago", rough(now - at)),
    };
    format!("{relative} ({})", stamp(at))
}

/// Formats a time in UTC as RFC 3339.
pub(crate) fn stamp(at: UnixMillis) -> String {
    let (seconds, millis) = (at / 1_000, at % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The calendar repeats every 400 years. Here a year starts in March, so that a leap day is its
    // last day.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Formats a table. Each column is as wide as its widest cell.
pub(crate) fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| console::measure_text_width(&row[column]));
        cells.chain([head[column].len()]).max().unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    let head = head.map(str::to_owned);
    for row in std::iter::once(&head).chain(rows) {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            let missing = width.saturating_sub(console::measure_text_width(cell));
            let _ = write!(line, "{cell}{}  ", " ".repeat(missing));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{plain, rough, shortened, stamp, table, when};

    #[test]
    fn stamp_matches_gregorian_calendar() {
        for (at, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (1_798_761_599_000, "2026-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(stamp(at), expected);
        }
        assert_eq!(when(1_000, 4_000), "3 s ago (1970-01-01T00:00:01.000Z)");
        assert_eq!(when(7_200_000, 0), "in 2 h (1970-01-01T02:00:00.000Z)");
        assert_eq!([rough(5), rough(90_000), rough(300_000)], ["5 ms", "90 s", "5 min"]);
    }

    #[test]
    fn plain_text_escapes_control_characters() {
        assert_eq!(plain("a\x1b[2Jb\nc\u{202e}d"), "a\\u{1b}[2Jb c\\u{202e}d");
        assert_eq!(shortened("grün", 4), "grün");
        assert_eq!(shortened("grünes", 4), "grü…");
    }

    #[test]
    fn table_columns_fit_widest_cell() {
        let rows = [["a".to_owned(), "1".to_owned()], ["größer".to_owned(), "2".to_owned()]];
        assert_eq!(table(["X", "Y"], &rows), "X       Y\na       1\ngrößer  2\n");
    }
}

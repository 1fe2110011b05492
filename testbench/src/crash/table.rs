//! The table of results, and the log of a job with a violation.

use std::time::Duration;

use super::oracle::{Event, Line};

/// Returns a percentile of sorted values.
pub(crate) fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((last * percent).div_ceil(100)).copied()
}

pub(crate) fn shown(millis: Option<u64>) -> String {
    millis.map_or_else(|| "none".to_owned(), |millis| format!("{millis} ms"))
}

pub(crate) fn print(rows: &[(&str, String)]) {
    for (name, value) in rows {
        println!("  {name:<34} {value:>12}");
    }
}

/// Returns all lines of a job, and the failures during it.
pub(super) fn story(lines: &[Line], text: &str, job: &str) -> String {
    let of_job = |line: &&Line| line.job == job;
    let (first, last) = (lines.iter().find(of_job), lines.iter().rfind(of_job));
    let (Some(first), Some(last)) = (first, last) else { return "no lines".to_owned() };
    let told = lines.iter().zip(text.lines()).filter(|(line, _)| {
        let fault = matches!(line.event, Event::Fault { .. });
        line.job == job || (fault && (first.at..=last.at).contains(&line.at))
    });
    let since = |at: u64| Duration::from_millis(at.saturating_sub(first.at)).as_secs_f64();
    told.map(|(line, text)| {
        let words = text.split_once(' ').map_or(text, |(_, words)| words);
        format!("  {:>8.3} {words}\n", since(line.at))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentile_is_one_of_the_values() {
        let values: Vec<u64> = (1..=100).collect();
        assert_eq!(percentile(&values, 50), Some(51));
        assert_eq!(percentile(&values, 99), Some(100));
        assert_eq!(percentile(&[7], 99), Some(7));
        assert_eq!(percentile(&[], 50), None);
    }
}

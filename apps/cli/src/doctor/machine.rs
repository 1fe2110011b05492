//! Checks the clock, the locale and the terminal of the machine.

use std::{env, time::Instant};

use console::Term;

use super::Finding;
use crate::store::{stamp, wall_clock};

/// Start of 2026 in Unix milliseconds. The program is not older than that.
const EARLIEST: u64 = 1_767_225_600_000;

/// Start of 2100 in Unix milliseconds.
const LATEST: u64 = 4_102_444_800_000;

/// Start time of the checks, on the wall clock and the monotonic clock.
pub(super) struct Began {
    wall: u64,
    steady: Instant,
}

impl Began {
    pub(super) fn now() -> Self {
        Self { wall: wall_clock(), steady: Instant::now() }
    }

    /// Returns how far the two clocks have drifted apart since the start, in milliseconds.
    fn apart(&self) -> u64 {
        let steady = u64::try_from(self.steady.elapsed().as_millis()).unwrap_or(u64::MAX);
        wall_clock().abs_diff(self.wall.saturating_add(steady))
    }
}

pub(super) fn check(began: &Began) -> Vec<Finding> {
    let mut findings = vec![clock(wall_clock(), began.apart())];
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    findings.extend(locale(variable));
    findings.push(terminal());
    findings
}

fn clock(now: u64, apart: u64) -> Finding {
    const CHECK: &str = "clock";
    let what = format!("the clock shows {}", stamp(now));
    match (EARLIEST..LATEST).contains(&now) {
        false => Finding::failure(CHECK, what, "set the clock, else the times of tasks are wrong"),
        true if apart > 500 => Finding::warning(
            CHECK,
            format!("{what}, and it jumped by {apart} ms during this check"),
            "synchronize the clock with NTP, in small steps",
        ),
        true => Finding::ok(CHECK, what),
    }
}

/// Checks that the locale is UTF-8, because the program writes UTF-8.
fn locale(variable: impl Fn(&str) -> Option<String>) -> Option<Finding> {
    if cfg!(windows) {
        return None;
    }
    let chosen = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| variable(name));
    let chosen = chosen.unwrap_or_else(|| "C".to_owned());
    let lower = chosen.to_ascii_lowercase();
    Some(match lower.contains("utf-8") || lower.contains("utf8") {
        true => Finding::ok("locale", format!("{chosen} is UTF-8")),
        false => Finding::warning(
            "locale",
            format!("{chosen} is not UTF-8, so some characters may display incorrectly"),
            "set LC_ALL to a UTF-8 locale, such as C.UTF-8",
        ),
    })
}

fn terminal() -> Finding {
    const CHECK: &str = "terminal";
    if !console::user_attended() {
        return Finding::ok(CHECK, "no terminal: no colors, progress bars or forms");
    }
    let (rows, columns) = Term::stdout().size();
    let colors = if console::colors_enabled() { "colors" } else { "no colors" };
    Finding::ok(CHECK, format!("{columns} columns, {rows} rows, {colors}"))
}

#[cfg(test)]
mod tests {
    use super::{EARLIEST, clock, locale};
    use crate::doctor::finding::Level;

    #[test]
    fn clock_wrong_or_moved_is_reported() {
        assert_eq!(clock(EARLIEST, 0).level, Level::Ok);
        assert_eq!(clock(EARLIEST - 1, 0).level, Level::Failure);
        assert_eq!(clock(EARLIEST, 60_000).level, Level::Warning);
    }

    #[test]
    fn locale_uses_first_variable_that_is_set() {
        let level = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            };
            locale(variable).map(|finding| finding.level)
        };
        assert_eq!(level(&[("LANG", "de_DE.UTF-8")]), Some(Level::Ok));
        assert_eq!(level(&[("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]), Some(Level::Warning));
        assert_eq!(level(&[]), Some(Level::Warning));
    }
}

//! Output of the processes of a tool worker: logged within a limit, and retained for errors.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// Bytes of the last lines that one process retains.
pub(crate) const MAX_RETAINED: usize = 16 << 10;

/// Bytes that enter the log in one minute, per tool worker.
const MAX_LOGGED: usize = 1 << 20;

const MINUTE: Duration = Duration::from_secs(60);

/// Target of the lines in the log.
const OUTPUT: &str = "outlive::tool_worker";

/// Maximum bytes of a logged line.
const MAX_LINE: usize = 4 << 10;

/// The log of one tool worker.
#[derive(Debug)]
pub(crate) struct OutputLog {
    tool_worker: Box<str>,
    // A std mutex: no code awaits while it is held.
    minute: Mutex<Minute>,
}

/// Bytes that were logged in the current minute.
#[derive(Debug, Default)]
struct Minute {
    start: Option<Instant>,
    logged: usize,
    is_reported: bool,
}

/// The last lines of one process on standard error.
#[derive(Debug, Default)]
pub(crate) struct LastLines {
    inner: Mutex<Retained>,
}

#[derive(Debug, Default)]
struct Retained {
    lines: VecDeque<String>,
    bytes: usize,
}

impl OutputLog {
    pub(crate) fn new(tool_worker: &str) -> Self {
        Self { tool_worker: tool_worker.into(), minute: Mutex::default() }
    }

    /// Logs a line of output. Lines above the limit are dropped.
    pub(crate) fn line(&self, line: &str) {
        let line = shown(line, MAX_LINE);
        let mut minute = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if minute.start.is_none_or(|start| now.duration_since(start) >= MINUTE) {
            *minute = Minute { start: Some(now), ..Minute::default() };
        }
        minute.logged = minute.logged.saturating_add(line.len());
        let is_logged = minute.logged <= MAX_LOGGED;
        let is_first_dropped =
            !is_logged && !std::mem::replace(&mut minute.is_reported, !is_logged);
        drop(minute);
        let tool_worker = &*self.tool_worker;
        if is_logged {
            tracing::info!(target: OUTPUT, tool_worker, line, "output of a tool worker");
        } else if is_first_dropped {
            tracing::warn!(
                tool_worker,
                "a tool worker writes more than 1 MiB per minute; the rest of this minute is not logged"
            );
        }
    }
}

impl LastLines {
    /// Retains a line.
    pub(crate) fn add(&self, line: &str) {
        let line = shown(line, MAX_RETAINED / 4);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.bytes += line.len();
        inner.lines.push_back(line);
        while inner.bytes > MAX_RETAINED {
            let Some(oldest) = inner.lines.pop_front() else { break };
            inner.bytes -= oldest.len();
        }
    }

    /// Returns all retained lines as one text.
    pub(crate) fn text(&self) -> String {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// Returns a line without control characters, of at most `max` bytes.
fn shown(line: &str, max: usize) -> String {
    let mut line = outlive::text::line(line).into_owned();
    if line.len() > max {
        let end = (0..=max).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::{LastLines, MAX_RETAINED};

    #[test]
    fn retained_lines_are_bounded_and_visible() {
        let lines = LastLines::default();
        for number in 0..10_000 {
            lines.add(&format!("\u{1b}[31mline {number}"));
        }
        lines.add("");
        assert!(lines.text().len() <= MAX_RETAINED + 1_000, "{}", lines.text().len());
        assert!(lines.text().contains("line 9999"));
        assert!(!lines.text().contains('\u{1b}'));
        lines.add(&"x".repeat(1 << 20));
        assert!(lines.text().len() <= MAX_RETAINED + 1_000);
    }
}

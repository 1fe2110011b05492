//! Standard error of the processes of an upstream: bounded, logged, and shown in the status.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::{excerpt::without_tokens, settings::LogLevel};

/// Bytes of lines that are retained.
const MAX_RETAINED: usize = 16 << 10;

/// Bytes that enter the log in one minute.
const MAX_LOGGED: usize = 1 << 20;

const MINUTE: Duration = Duration::from_secs(60);

/// The last lines of standard error.
#[derive(Debug, Default)]
pub(crate) struct StderrLines {
    inner: Mutex<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    retained: VecDeque<String>,
    bytes: usize,
    minute: Option<Instant>,
    logged: usize,
}

impl StderrLines {
    /// Retains a line, and logs it.
    pub(crate) fn add(&self, upstream: &str, level: LogLevel, line: &str) {
        let line = outlive::text::line(line);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if inner.minute.is_none_or(|start| now.duration_since(start) >= MINUTE) {
            inner.minute = Some(now);
            inner.logged = 0;
        }
        let is_logged = inner.logged + line.len() <= MAX_LOGGED;
        inner.logged = inner.logged.saturating_add(line.len());
        inner.retain(line.clone().into_owned());
        drop(inner);
        if is_logged {
            log(upstream, level, &line);
        }
    }

    /// Returns the last line for clients, if there is one.
    pub(crate) fn last(&self) -> Option<String> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner
            .retained
            .iter()
            .rev()
            .find(|line| !line.trim().is_empty())
            .map(|line| without_tokens(line))
    }

    /// Returns the retained lines, for the operator.
    pub(crate) fn all(&self) -> Vec<String> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.retained.iter().cloned().collect()
    }
}

impl Lines {
    fn retain(&mut self, mut line: String) {
        if line.len() > MAX_RETAINED / 4 {
            let end = (0..=MAX_RETAINED / 4).rev().find(|at| line.is_char_boundary(*at));
            line.truncate(end.unwrap_or(0));
        }
        self.bytes += line.len();
        self.retained.push_back(line);
        while self.bytes > MAX_RETAINED {
            let Some(oldest) = self.retained.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }
}

fn log(upstream: &str, level: LogLevel, line: &str) {
    match level {
        LogLevel::Off => {}
        LogLevel::Error => tracing::error!(upstream, line, "upstream"),
        LogLevel::Warn => tracing::warn!(upstream, line, "upstream"),
        LogLevel::Info => tracing::info!(upstream, line, "upstream"),
        LogLevel::Debug => tracing::debug!(upstream, line, "upstream"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retained_lines_are_bounded_and_visible() {
        let lines = StderrLines::default();
        for number in 0..10_000 {
            lines.add("files", LogLevel::Off, &format!("\u{1b}[31mline {number}"));
        }
        let all = lines.all();
        assert!(all.iter().map(String::len).sum::<usize>() <= MAX_RETAINED);
        assert_eq!(all.last().unwrap(), &lines.last().unwrap());
        assert!(all.iter().all(|line| !line.contains('\u{1b}')));
        lines.add("files", LogLevel::Off, &"x".repeat(1 << 20));
        assert!(lines.all().iter().map(String::len).sum::<usize>() <= MAX_RETAINED);
    }
}

//! Output of `outlive tasks watch`: a table, or one line per change.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, IsTerminal},
};

use console::Term;
use outlive::text;
use serde_json::Value;

use super::{
    super::{page::state_in_words, table, target::Taken},
    news::{News, What},
    unreachable::UNREACHABLE,
};
use crate::{
    call::screen::{Screen, shown},
    error::{CliError, Kind},
};

/// State of a task that waits for input.
const INPUT_REQUIRED: &str = "input_required";

/// Width of a progress bar in the table.
const BAR: usize = 16;

/// A watched call.
struct Call {
    taken: Taken,
    seen: Value,
}

/// The output.
pub(super) struct View<'a> {
    screen: &'a Screen,
    is_json: bool,
    term: Option<Term>,
    calls: Vec<Call>,
    /// Last line printed for each call, without a table.
    said: BTreeMap<usize, String>,
    /// Servers whose outage was reported.
    unreachable: BTreeSet<String>,
    drawn: usize,
}

impl<'a> View<'a> {
    pub(super) fn new(screen: &'a Screen, is_json: bool, calls: Vec<Taken>) -> Self {
        let calls = calls.into_iter().map(|taken| Call { seen: taken.described(), taken });
        let calls = calls.collect();
        let term = (!is_json && io::stdout().is_terminal()).then(Term::stdout);
        let (said, unreachable) = (BTreeMap::new(), BTreeSet::new());
        Self { screen, is_json, term, calls, said, unreachable, drawn: 0 }
    }

    /// Returns whether the output is a table that is redrawn in place.
    pub(super) fn is_table(&self) -> bool {
        self.term.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Updates a call, and redraws.
    pub(super) fn take(&mut self, News { at, what }: News) {
        let Some(call) = self.calls.get_mut(at) else { return };
        let server = call.seen["server"].as_str().unwrap_or_default().to_owned();
        match what {
            What::Seen { call: seen, asks } => {
                call.seen = seen;
                match (asks, self.is_json) {
                    (Some(printed), true) => call.seen["output"] = printed.join("\n").into(),
                    (Some(printed), false) => {
                        let lines = call.before_question(&printed);
                        self.above(|view| lines.iter().for_each(|line| view.write(line)));
                    }
                    (None, _) => {}
                }
            }
            What::Unreachable(why) => {
                if self.unreachable.insert(server.clone()) {
                    let told = format!(
                        "{} does not respond: {}; retrying until it responds\n  to return later: outlive tasks watch",
                        shown(&server),
                        shown(&why)
                    );
                    self.above(|view| view.screen.talk(&told));
                }
            }
            What::Reachable => {
                if self.unreachable.remove(&server) {
                    let told = format!("{} responds again", shown(&server));
                    self.above(|view| view.screen.talk(&told));
                }
            }
        }
        self.draw();
    }

    /// Clears the table, and writes something above it.
    fn above(&mut self, write: impl FnOnce(&Self)) {
        if let Some(term) = &self.term {
            // A closed terminal is not an error.
            let _ = term.clear_last_lines(self.drawn);
        }
        write(self);
        self.drawn = 0;
    }

    /// Writes a line of data.
    fn write(&self, line: &str) {
        match &self.term {
            Some(term) => drop(term.write_line(line)),
            None => self.screen.data(line),
        }
    }

    pub(super) fn draw(&mut self) {
        let rows: Vec<Vec<String>> = self.calls.iter().map(Call::row).collect();
        let Some(term) = &self.term else {
            for (at, row) in rows.iter().enumerate() {
                let line = match self.is_json {
                    true => {
                        self.calls.get(at).map(|call| call.seen.to_string()).unwrap_or_default()
                    }
                    false => row.join("  ").trim_end().to_owned(),
                };
                if self.said.get(&at) != Some(&line) {
                    self.screen.data(&line);
                    self.said.insert(at, line);
                }
            }
            return;
        };
        let width = usize::from(term.size().1).saturating_sub(1);
        let lines =
            table::lines(&["HANDLE", "TOOL", "STATE", "PROGRESS", "MESSAGE"], &rows, Some(width));
        // A closed terminal is not an error.
        let _ = term.clear_last_lines(self.drawn);
        for line in &lines {
            let _ = term.write_line(line);
        }
        self.drawn = lines.len();
    }

    pub(super) fn count(&self, state: &str) -> usize {
        self.calls.iter().filter(|call| call.seen["state"] == state).count()
    }

    /// Returns whether some task waits for input, and every other task waits too or has ended.
    pub(super) fn all_wait_for_input(&self) -> bool {
        let is = |call: &Call, states: &[&str]| {
            call.seen["state"].as_str().is_some_and(|state| states.contains(&state))
        };
        self.count(INPUT_REQUIRED) > 0
            && self.calls.iter().all(|call| {
                is(
                    call,
                    &["calling", INPUT_REQUIRED, UNREACHABLE, "completed", "failed", "cancelled"],
                )
            })
    }

    /// Returns the error for remaining tasks that all wait for input without a terminal.
    pub(super) fn unanswered(&self) -> CliError {
        self.hint();
        let asking = self.calls.iter().filter(|call| call.seen["state"] == INPUT_REQUIRED);
        let commands: Vec<String> = asking.map(|call| call.taken.command("answer")).collect();
        let what = match commands.len() {
            1 => "a task waits for input".to_owned(),
            count => format!("{count} tasks wait for input"),
        };
        CliError::new(Kind::Unanswered, format!("{what}, and no other task is running"))
            .remedy(commands.join("\n       "))
    }

    /// Prints the commands that print the results of completed tasks.
    pub(super) fn hint(&self) {
        for call in self.calls.iter().filter(|call| call.seen["state"] == "completed") {
            self.screen.talk(&call.taken.command("result"));
        }
    }
}

impl Call {
    /// Returns the lines before an input request: the output of the task, and a message of several
    /// lines.
    fn before_question(&self, printed: &[String]) -> Vec<String> {
        let asked = self.question().unwrap_or_default();
        let asked = Some(text::lines(asked)).filter(|asked| asked.contains('\n'));
        let asked = asked.iter().flat_map(|asked| asked.lines());
        let lines = printed.iter().map(String::as_str).chain(asked);
        let name = shown(self.taken.name());
        lines.map(|line| format!("{name} | {}", shown(&text::lines(line)))).collect()
    }

    /// Returns the message of the first open input request.
    fn question(&self) -> Option<&str> {
        let question = self.seen["inputRequests"].as_object()?.values().next()?;
        Some(
            question.pointer("/params/message").and_then(Value::as_str).unwrap_or("input required"),
        )
    }

    fn row(&self) -> Vec<String> {
        let text = |key: &str| shown(self.seen[key].as_str().unwrap_or_default());
        let state = state_in_words(self.seen["state"].as_str().unwrap_or_default());
        let message = match self.question() {
            Some(asked) => format!("asks: {}", shown(asked)),
            None => text("message"),
        };
        let far = bar(&self.seen["progress"]);
        vec![shown(self.taken.name()), text("tool"), state, far, message]
    }
}

/// Formats the progress, as a bar if there is a total.
fn bar(far: &Value) -> String {
    let Some(done) = far["progress"].as_f64() else { return String::new() };
    match far["total"].as_f64().filter(|total| *total > 0.0) {
        Some(total) => {
            let part = (done / total).clamp(0.0, 1.0);
            let full = (part * BAR as f64) as usize;
            format!("[{}{}] {:>3.0}%", "=".repeat(full), " ".repeat(BAR - full), part * 100.0)
        }
        None => done.to_string(),
    }
}

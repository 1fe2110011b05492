//! What `outlive tasks watch` shows: a table, or a line for each change.

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

/// The state of a task that waits for an answer.
const INPUT_REQUIRED: &str = "input_required";

/// How wide a bar is in the table.
const BAR: usize = 16;

/// A call that is watched.
struct Call {
    taken: Taken,
    seen: Value,
}

/// What is shown.
pub(super) struct View<'a> {
    screen: &'a Screen,
    is_json: bool,
    term: Option<Term>,
    calls: Vec<Call>,
    /// What was last said of each, where changes are lines.
    said: BTreeMap<usize, String>,
    /// The servers of which was told that they do not answer.
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

    /// Whether it is a table that is drawn over itself.
    pub(super) fn is_table(&self) -> bool {
        self.term.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Shows news of a call.
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
                        "{} does not answer: {}; trying again until it does\n  to come back later: outlive tasks watch",
                        shown(&server),
                        shown(&why)
                    );
                    self.above(|view| view.screen.talk(&told));
                }
            }
            What::Reachable => {
                if self.unreachable.remove(&server) {
                    let told = format!("{} answers again", shown(&server));
                    self.above(|view| view.screen.talk(&told));
                }
            }
        }
        self.draw();
    }

    /// Writes something where the table is; the table is drawn again below it.
    fn above(&mut self, write: impl FnOnce(&Self)) {
        if let Some(term) = &self.term {
            // A terminal that went away shows nothing, and that is no failure.
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
        // A terminal that went away shows nothing, and that is no failure.
        let _ = term.clear_last_lines(self.drawn);
        for line in &lines {
            let _ = term.write_line(line);
        }
        self.drawn = lines.len();
    }

    pub(super) fn count(&self, state: &str) -> usize {
        self.calls.iter().filter(|call| call.seen["state"] == state).count()
    }

    /// Whether everything that is not over waits for an answer, and something does.
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

    /// All tasks that are left wait for input, and there is no terminal.
    pub(super) fn unanswered(&self) -> CliError {
        self.hint();
        let asking = self.calls.iter().filter(|call| call.seen["state"] == INPUT_REQUIRED);
        let commands: Vec<String> = asking.map(|call| call.taken.command("answer")).collect();
        let what = match commands.len() {
            1 => "a task waits for an answer".to_owned(),
            count => format!("{count} tasks wait for answers"),
        };
        CliError::new(Kind::Unanswered, format!("{what}, and nothing else goes on"))
            .remedy(commands.join("\n       "))
    }

    /// How to get the results that are there.
    pub(super) fn hint(&self) {
        for call in self.calls.iter().filter(|call| call.seen["state"] == "completed") {
            self.screen.talk(&call.taken.command("result"));
        }
    }
}

impl Call {
    /// What stands before a question: what was printed, and the question where a line has no room for it.
    fn before_question(&self, printed: &[String]) -> Vec<String> {
        let asked = self.question().unwrap_or_default();
        let asked = Some(text::lines(asked)).filter(|asked| asked.contains('\n'));
        let asked = asked.iter().flat_map(|asked| asked.lines());
        let lines = printed.iter().map(String::as_str).chain(asked);
        let name = shown(self.taken.name());
        lines.map(|line| format!("{name} | {}", shown(&text::lines(line)))).collect()
    }

    /// The text of its first open question.
    fn question(&self) -> Option<&str> {
        let question = self.seen["questions"].as_object()?.values().next()?;
        Some(question.pointer("/params/message").and_then(Value::as_str).unwrap_or("a question"))
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

/// How far a task is, as a bar where there is a total.
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

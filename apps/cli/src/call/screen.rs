//! What the user sees: data on standard output, talk on standard error, and on a terminal a bar at the
//! bottom of it.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::bar::{Bar, View};

/// The terminal, or the two streams that stand in for one.
pub(crate) struct Screen {
    state: Mutex<State>,
    /// Whether there is a terminal for talk.
    is_lively: bool,
    /// Whether somebody reads the data on a terminal.
    is_shown: bool,
}

#[derive(Default)]
struct State {
    /// What goes on, if something does.
    view: Option<View>,
    /// Where that is drawn. Not there while a form has the terminal to itself.
    bar: Option<Bar>,
    /// What is to be said when the form is over.
    held: Option<Vec<Said>>,
    /// Why standard output takes nothing any more.
    failure: Option<OutputFailure>,
}

/// Why standard output takes nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputFailure {
    /// Whoever read it has left, as `head` does.
    ReaderLeft,
    /// What was to be written is lost, and this is why.
    Lost(String),
}

enum Said {
    Data(String),
    Talk(String),
}

impl Screen {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            is_lively: io::stderr().is_terminal(),
            is_shown: io::stdout().is_terminal(),
        })
    }

    /// Whether there is somebody to ask.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Begins to show that something goes on.
    pub(crate) fn begin(&self, what: &str) {
        self.show(View { part: None, message: shown(what) });
    }

    /// Shows how far it is: as a bar where there is a total.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(shown).unwrap_or_default();
        self.show(match total.filter(|total| *total > 0.0) {
            Some(total) => View {
                part: Some((done / total).clamp(0.0, 1.0)),
                message: format!("{done} of {total}  {message}").trim_end().to_owned(),
            },
            None => {
                View { part: None, message: format!("{done}  {message}").trim_end().to_owned() }
            }
        });
    }

    /// Shows what it is doing.
    pub(crate) fn status(&self, message: &str) {
        self.show(View { part: None, message: shown(message) });
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.view = None;
        state.bar = None;
    }

    /// Data, for whoever reads standard output. On a terminal without what would steer it.
    pub(crate) fn data(&self, text: &str) {
        let text = if self.is_shown { shown_lines(text) } else { text.to_owned() };
        self.lock().say(Said::Data(text));
    }

    /// Talk, for people.
    pub(crate) fn talk(&self, text: &str) {
        self.lock().say(Said::Talk(shown_lines(text)));
    }

    /// Why data does not arrive any more, if it does not.
    pub(crate) fn output_failure(&self) -> Option<OutputFailure> {
        self.lock().failure.clone()
    }

    /// Gives the terminal to a form.
    pub(crate) fn hold(&self) {
        let mut state = self.lock();
        state.bar = None;
        state.held.get_or_insert_default();
    }

    /// Takes the terminal back, and says what was held back.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        for said in state.held.take().into_iter().flatten() {
            let written = write(&said);
            state.note(written);
        }
        state.draw(self.is_lively);
    }

    fn show(&self, view: View) {
        let mut state = self.lock();
        state.view = Some(view);
        state.draw(self.is_lively);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn draw(&mut self, is_lively: bool) {
        let (Some(view), true, None) = (&self.view, is_lively, &self.held) else { return };
        match &self.bar {
            Some(bar) => bar.show(view.clone()),
            None => self.bar = Some(Bar::new(view.clone())),
        }
    }

    fn say(&mut self, said: Said) {
        let mut written = Ok(());
        match (&mut self.held, &self.bar) {
            (Some(held), _) => held.push(said),
            (None, Some(bar)) => bar.above(|| written = write(&said)),
            (None, None) => written = write(&said),
        }
        self.note(written);
    }

    /// Remembers the first failure: whoever waits for a call has to know that nobody reads it.
    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failure.get_or_insert_with(|| match error.kind() {
                io::ErrorKind::BrokenPipe => OutputFailure::ReaderLeft,
                _ => OutputFailure::Lost(error.to_string()),
            });
        }
    }
}

/// Says it; whether data has arrived. Talk that nobody hears is no failure.
fn write(said: &Said) -> io::Result<()> {
    match said {
        Said::Data(text) => {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}").and_then(|()| out.flush())
        }
        Said::Talk(text) => {
            let _ = writeln!(io::stderr().lock(), "{text}");
            Ok(())
        }
    }
}

/// A text of a server in one line, without what would steer a terminal.
pub(crate) fn shown(text: &str) -> String {
    shown_lines(text).replace(['\n', '\t'], " ")
}

/// A text of a server, without what would steer a terminal.
pub(crate) fn shown_lines(text: &str) -> String {
    let plain = console::strip_ansi_codes(text);
    plain.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_steers_a_terminal_is_not_shown() {
        assert_eq!(shown("\u{1b}[31mred\u{1b}[0m\u{7}\nnext\r"), "red next");
        assert_eq!(shown("\u{1b}]0;title\u{7}x\u{9b}2Jy"), "xy");
    }
}

//! The user's screen: data on standard output, messages on standard error, and a progress line on a
//! terminal.

use std::{
    io::{self, IsTerminal},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use outlive::text;

use super::progress_bar::{Bar, View};
use crate::print;

/// The terminal, or standard output and standard error without one.
pub(crate) struct Screen {
    state: Mutex<State>,
    /// Whether standard error is a terminal.
    is_lively: bool,
}

#[derive(Default)]
struct State {
    /// Contents of the progress line, while a call runs.
    view: Option<View>,
    /// The progress line. `None` while a form uses the terminal.
    bar: Option<Bar>,
    /// Output that waits until a form ends.
    held: Option<Vec<Said>>,
    /// First error of a write to standard output.
    failure: Option<OutputFailure>,
}

/// Reason why standard output cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputFailure {
    /// The reader closed the pipe, as `head` does.
    ReaderLeft,
    /// Output was lost, with the error.
    Lost(String),
}

enum Said {
    Data(String),
    Page(String),
    Talk(String),
}

impl Screen {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), is_lively: io::stderr().is_terminal() })
    }

    /// Returns whether the user can fill in forms.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Starts the progress line.
    pub(crate) fn begin(&self, what: &str) {
        self.show(View { part: None, message: shown(what) });
    }

    /// Shows the progress, as a bar if there is a total.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(|it| shown(&text::lines(it))).unwrap_or_default();
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

    /// Shows a status message.
    pub(crate) fn status(&self, message: &str) {
        self.show(View { part: None, message: shown(&text::lines(message)) });
    }

    /// Removes the progress line.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.view = None;
        state.bar = None;
    }

    /// Writes data to standard output.
    pub(crate) fn data(&self, text: &str) {
        self.lock().say(Said::Data(text.to_owned()));
    }

    /// Writes a page of the program, which may have styles, to standard output.
    pub(crate) fn page(&self, text: &str) {
        self.lock().say(Said::Page(text.to_owned()));
    }

    /// Writes a message to standard error.
    pub(crate) fn talk(&self, text: &str) {
        self.lock().say(Said::Talk(text.to_owned()));
    }

    /// Shows a message of a server. The prefix prevents it from imitating the program's own
    /// messages.
    pub(crate) fn quote(&self, text: &str) {
        self.talk(&print::quoted(text));
    }

    /// Returns the error of standard output, if a write failed.
    pub(crate) fn output_failure(&self) -> Option<OutputFailure> {
        self.lock().failure.clone()
    }

    /// Reserves the terminal for a form. Other output waits.
    pub(crate) fn hold(&self) {
        let mut state = self.lock();
        state.bar = None;
        state.held.get_or_insert_default();
    }

    /// Ends the reservation, and prints the output that waited.
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

    /// Records the first failure, so that a waiting call can detach.
    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failure.get_or_insert_with(|| match error.kind() {
                io::ErrorKind::BrokenPipe => OutputFailure::ReaderLeft,
                _ => OutputFailure::Lost(error.to_string()),
            });
        }
    }
}

/// Writes a message. Returns only errors of standard output.
fn write(said: &Said) -> io::Result<()> {
    match said {
        Said::Data(text) => print::data(text),
        Said::Page(text) => print::page(text),
        Said::Talk(text) => {
            print::say_wrapped(text);
            Ok(())
        }
    }
}

/// Escapes a text of a server and joins it into one line.
pub(crate) fn shown(text: &str) -> String {
    text::line(text).into_owned()
}

/// Escapes and truncates a text of a server, for labels and prompts.
pub(crate) fn short(text: &str, most: usize) -> String {
    console::truncate_str(&shown(text), most, "…").into_owned()
}

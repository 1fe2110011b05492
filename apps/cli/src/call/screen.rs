//! What the user sees: data on standard output, talk on standard error, and on a terminal a bar at the
//! bottom of it.

use std::{
    io::{self, IsTerminal},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use outlive::text;

use super::progress_bar::{Bar, View};
use crate::print;

/// The terminal, or the two streams that stand in for one.
pub(crate) struct Screen {
    state: Mutex<State>,
    /// Whether there is a terminal for talk.
    is_lively: bool,
}

#[derive(Default)]
struct State {
    /// What goes on, if something does.
    view: Option<View>,
    /// Where that is drawn. Not there while a form has the terminal to itself.
    bar: Option<Bar>,
    /// What is to be said when the form is over.
    held: Option<Vec<Said>>,
    /// Why standard output cannot be written.
    failure: Option<OutputFailure>,
}

/// Why standard output cannot be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputFailure {
    /// The reader has left, as `head` does.
    ReaderLeft,
    /// Output is lost, for this reason.
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

    /// Shows what it is doing.
    pub(crate) fn status(&self, message: &str) {
        self.show(View { part: None, message: shown(&text::lines(message)) });
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.view = None;
        state.bar = None;
    }

    /// Writes data to standard output.
    pub(crate) fn data(&self, text: &str) {
        self.lock().say(Said::Data(text.to_owned()));
    }

    /// Writes a page of the program, which may be painted, to standard output.
    pub(crate) fn page(&self, text: &str) {
        self.lock().say(Said::Page(text.to_owned()));
    }

    /// Talk, for people.
    pub(crate) fn talk(&self, text: &str) {
        self.lock().say(Said::Talk(text.to_owned()));
    }

    /// Shows a message of a server. It cannot pass for a message of the program.
    pub(crate) fn quote(&self, text: &str) {
        self.talk(&print::quoted(text));
    }

    /// Returns why standard output cannot be written, if it cannot.
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

    /// Remembers the first failure, so that a waiting call can detach.
    fn note(&mut self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failure.get_or_insert_with(|| match error.kind() {
                io::ErrorKind::BrokenPipe => OutputFailure::ReaderLeft,
                _ => OutputFailure::Lost(error.to_string()),
            });
        }
    }
}

/// Writes a message. Returns whether data was written; a message on standard error that is lost is no failure.
fn write(said: &Said) -> io::Result<()> {
    match said {
        Said::Data(text) => print::data(text),
        Said::Page(text) => print::page(text),
        Said::Talk(text) => {
            print::say(text);
            Ok(())
        }
    }
}

/// A text of a server in one line, without what would steer a terminal.
pub(crate) fn shown(text: &str) -> String {
    text::line(text).into_owned()
}

/// A text of a server in one line that is not too long: for labels and prompts.
pub(crate) fn short(text: &str, most: usize) -> String {
    console::truncate_str(&shown(text), most, "…").into_owned()
}

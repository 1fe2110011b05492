//! What the user sees: data on standard output, talk on standard error, and on a terminal a bar at the
//! bottom of it.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use console::{Term, truncate_str};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// How many steps a bar has, whatever it counts.
const STEPS: f64 = 1_000.0;

/// How often the bar is drawn when nothing happens.
const TICK: Duration = Duration::from_millis(120);

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
    bar: Option<ProgressBar>,
    /// What is to be said when the form is over.
    held: Option<Vec<Said>>,
}

/// What the bar shows.
struct View {
    /// How much of it is full; `None` for a spinner.
    part: Option<f64>,
    message: String,
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
        state.clear();
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

    /// Gives the terminal to a form.
    pub(crate) fn hold(&self) {
        let mut state = self.lock();
        state.clear();
        state.held.get_or_insert_default();
    }

    /// Takes the terminal back, and says what was held back.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.held.take().into_iter().flatten().for_each(|said| write(&said));
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
        let bar = self.bar.get_or_insert_with(|| {
            let target = ProgressDrawTarget::stderr_with_hz(15);
            let bar = ProgressBar::with_draw_target(Some(STEPS as u64), target);
            bar.enable_steady_tick(TICK);
            bar
        });
        let message = view.message.clone();
        match view.part {
            Some(part) => {
                let style = style("[{bar:24}] {percent:>3}%  {fit}", 33, message);
                bar.set_style(style.progress_chars("=> "));
                bar.set_position((part * STEPS) as u64);
            }
            None => bar.set_style(style("{spinner} {fit}", 2, message)),
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    fn say(&mut self, said: Said) {
        match (&mut self.held, &self.bar) {
            (Some(held), _) => held.push(said),
            (None, Some(bar)) => bar.suspend(|| write(&said)),
            (None, None) => write(&said),
        }
    }
}

/// Who has stopped to read is not written to, and that is no failure.
fn write(said: &Said) {
    let _ = match said {
        Said::Data(text) => {
            let mut out = io::stdout().lock();
            writeln!(out, "{text}").and_then(|()| out.flush())
        }
        Said::Talk(text) => writeln!(io::stderr().lock(), "{text}"),
    };
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

/// A style whose `{fit}` is the message, as much of it as fits behind so many columns when it is drawn.
/// The last columns stay free: a terminal writes `^C` there, and must not begin another line for it. And
/// no line is longer than most terminals are wide: one that becomes narrower folds it, for good.
fn style(template: &str, before: usize, message: String) -> ProgressStyle {
    const FREE: usize = 3;
    const WIDEST: usize = 80;
    let style = ProgressStyle::with_template(template).expect("the template is written here");
    style.with_key("fit", move |_: &ProgressState, out: &mut dyn fmt::Write| {
        let width = usize::from(Term::stderr().size().1).min(WIDEST);
        let room = width.saturating_sub(before + FREE);
        // Writing to memory does not fail.
        let _ = out.write_str(&truncate_str(&message, room, "…"));
    })
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

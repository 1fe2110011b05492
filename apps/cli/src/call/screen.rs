//! What the user sees: data on standard output, talk on standard error, and on a terminal a bar at the
//! bottom of it.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How many steps a bar has, whatever it counts.
const STEPS: f64 = 1_000.0;

/// How often the bar is drawn when nothing happens.
const TICK: Duration = Duration::from_millis(120);

/// The terminal, or the two streams that stand in for one.
pub(crate) struct Screen {
    bar: ProgressBar,
    /// What is to be said when the user has answered. A form has the terminal to itself.
    held: Mutex<Option<Vec<Said>>>,
    /// Whether somebody reads the data on a terminal.
    is_shown: bool,
}

enum Said {
    Data(String),
    Talk(String),
}

impl Screen {
    pub(crate) fn new() -> Arc<Self> {
        let bar = match io::stderr().is_terminal() {
            true => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(15)),
            false => ProgressBar::hidden(),
        };
        let held = Mutex::new(None);
        Arc::new(Self { bar, held, is_shown: io::stdout().is_terminal() })
    }

    /// Whether there is somebody to ask.
    pub(crate) fn can_ask() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Begins to show that something goes on.
    pub(crate) fn begin(&self, what: &str) {
        self.bar.set_style(spinner());
        self.bar.set_message(shown(what));
        self.bar.enable_steady_tick(TICK);
    }

    /// Shows how far it is: as a bar where there is a total.
    pub(crate) fn progress(&self, done: f64, total: Option<f64>, message: Option<&str>) {
        let message = message.map(shown).unwrap_or_default();
        match total.filter(|total| *total > 0.0) {
            Some(total) => {
                let part = (done / total).clamp(0.0, 1.0) * STEPS;
                self.bar.set_style(bar());
                self.bar.set_length(STEPS as u64);
                self.bar.set_position(part as u64);
                self.bar.set_message(format!("{done} of {total}  {message}").trim_end().to_owned());
            }
            None => {
                self.bar.set_style(spinner());
                self.bar.set_message(format!("{done}  {message}").trim_end().to_owned());
            }
        }
    }

    /// Shows what it is doing.
    pub(crate) fn status(&self, message: &str) {
        self.bar.set_style(spinner());
        self.bar.set_message(shown(message));
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Data, for whoever reads standard output. On a terminal without what would steer it.
    pub(crate) fn data(&self, text: &str) {
        let text = if self.is_shown { shown_lines(text) } else { text.to_owned() };
        self.say(Said::Data(text));
    }

    /// Talk, for people.
    pub(crate) fn talk(&self, text: &str) {
        self.say(Said::Talk(shown_lines(text)));
    }

    fn say(&self, said: Said) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *held {
            Some(held) => held.push(said),
            None => self.bar.suspend(|| write(&said)),
        }
    }

    /// Gives the terminal to a form.
    pub(crate) fn hold(&self) {
        self.bar.disable_steady_tick();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
        self.held.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }

    /// Takes the terminal back, and says what was held back.
    pub(crate) fn release(&self) {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
        held.into_iter().flatten().for_each(|said| write(&said));
        if io::stderr().is_terminal() {
            self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(15));
            self.bar.enable_steady_tick(TICK);
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

fn spinner() -> ProgressStyle {
    style("{spinner} {wide_msg}")
}

fn bar() -> ProgressStyle {
    style("[{bar:24}] {percent:>3}%  {wide_msg}").progress_chars("=> ")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is written here")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn what_steers_a_terminal_is_not_shown() {
        assert_eq!(shown("\u{1b}[31mred\u{1b}[0m\u{7}\nnext\r"), "red next");
        assert_eq!(shown("\u{1b}]0;title\u{7}x\u{9b}2J"), "x2J");
    }
}

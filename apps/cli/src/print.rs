//! The only way out: everything that the program writes to standard output or standard error.
//!
//! Standard output is data: exact in a pipe, and on a terminal made visible (`outlive::text`). Standard
//! error is for people, and always made visible. So no text of a server, a tool or a caller can steer a
//! terminal, whoever printed it. `cargo xtask tidy` rejects other ways out.

#[cfg(unix)]
use std::os::fd::AsFd;
use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
    sync::LazyLock,
};

use console::{Term, measure_text_width};
use outlive::text;
use serde::de::IgnoredAny;
#[cfg(unix)]
use tokio::{io::Interest, net::unix::pipe::Sender};

/// Whether standard output is a terminal.
static IS_SHOWN: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());

/// Prefix of each line of a server or tool.
const GUTTER: &str = "| ";

/// How a part of the program's own text looks on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    Bold,
    Dim,
    Cyan,
    Green,
    Yellow,
    Red,
}

/// The marks of `Paint` in a text, in its order, and the one that ends them. They are noncharacters:
/// no text that was made visible has one.
const MARKS: [(char, &str); 7] = [
    ('\u{fdd0}', "\u{1b}[1m"),
    ('\u{fdd1}', "\u{1b}[2m"),
    ('\u{fdd2}', "\u{1b}[36m"),
    ('\u{fdd3}', "\u{1b}[32m"),
    ('\u{fdd4}', "\u{1b}[33m"),
    ('\u{fdd5}', "\u{1b}[1;31m"),
    PLAIN,
];
const PLAIN: (char, &str) = ('\u{fdd6}', "\u{1b}[0m");

/// Marks a text, for `page` and `say_painted`.
pub(crate) fn paint(paint: Paint, text: &str) -> String {
    let (mark, _) = MARKS[paint as usize];
    format!("{mark}{}{}", text::lines(text), PLAIN.0)
}

/// Writes data and a line end to standard output.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let shown = if *IS_SHOWN { visible(text) } else { Cow::Borrowed(text) };
    to_stdout(&shown)
}

/// Writes a page of the program, which may be painted, to standard output.
pub(crate) fn page(text: &str) -> io::Result<()> {
    to_stdout(&painted(text, *IS_SHOWN, console::colors_enabled()))
}

/// Writes a line for people to standard error. A closed standard error is no failure.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(text));
}

/// As `say`, of a text that may be painted.
pub(crate) fn say_painted(text: &str) {
    let shown = painted(text, true, console::colors_enabled_stderr());
    let _ = writeln!(io::stderr().lock(), "{shown}");
}

/// Writes the beginning of a line for people, who will write the rest.
pub(crate) fn prompt(text: &str) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write!(out, "{}", text::line(text)).and_then(|()| out.flush())
}

/// Writes bytes that the program made itself to standard output: generated files, and lines for the
/// process that started this one.
pub(crate) fn own(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Writes a line for people to standard error, as `eprintln!` would.
macro_rules! talk {
    ($($words:tt)*) => { $crate::print::say(&format!($($words)*)) };
}
pub(crate) use talk;

/// A text of a peer on a terminal; JSON stays JSON.
fn visible(text: &str) -> Cow<'_, str> {
    match text::lines(text) {
        Cow::Owned(_) if serde_json::from_str::<IgnoredAny>(text).is_ok() => text::json(text),
        shown => shown,
    }
}

fn painted(text: &str, is_shown: bool, in_color: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(|char| code(char).is_some()) {
        let mark = part.chars().next_back().filter(|char| code(*char).is_some());
        let words = mark.map_or(part, |mark| &part[..part.len() - mark.len_utf8()]);
        match is_shown {
            true => out.push_str(&visible(words)),
            false => out.push_str(words),
        }
        if let (true, Some(code)) = (in_color, mark.and_then(code)) {
            out.push_str(code);
        }
    }
    out
}

fn code(char: char) -> Option<&'static str> {
    MARKS.iter().find(|(mark, _)| *mark == char).map(|(_, code)| *code)
}

fn to_stdout(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush())
}

/// Completes when whoever read standard output has left: a pipe says so before anything is written
/// to it. What is no pipe is not left.
pub(crate) async fn reader_left() {
    #[cfg(unix)]
    if let Some(out) = pipe()
        && out.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Standard output, to be watched and not to be written to: others may share it, and want it blocking.
#[cfg(unix)]
fn pipe() -> Option<Sender> {
    let out = io::stdout();
    if out.is_terminal() {
        return None;
    }
    Sender::from_owned_fd_unchecked(out.as_fd().try_clone_to_owned().ok()?).ok()
}

/// What a peer says: in lines that begin with a mark and do not reach the end of the terminal, so that
/// none can pass for a line of the program.
pub(crate) fn quoted(text: &str) -> String {
    hanging(GUTTER, GUTTER, text)
}

/// Text in lines that do not reach the end of the terminal: the first begins with one prefix, all
/// others with another.
pub(crate) fn hanging(first: &str, rest: &str, text: &str) -> String {
    let width = Term::stderr().size_checked().map(|(_, columns)| usize::from(columns));
    hanging_within(first, rest, text, width)
}

fn hanging_within(first: &str, rest: &str, text: &str, width: Option<usize>) -> String {
    /// A terminal that is narrower than this folds lines by itself.
    const NARROWEST: usize = 20;
    let room = width.filter(|width| *width >= NARROWEST).map(|width| width - 1);
    let mut out = String::with_capacity(text.len() + 16);
    let (mut prefix, mut ends) = (first, "");
    for line in text::lines(text).trim_end_matches('\n').split('\n') {
        let line = line.replace('\t', "    ");
        let mut left = line.as_str();
        loop {
            let end = room.map_or(left.len(), |room| fits(left, room - prefix.len().min(room / 2)));
            out.extend([ends, prefix, &left[..end]]);
            (prefix, ends, left) = (rest, "\n", &left[end..]);
            if left.is_empty() {
                break;
            }
        }
    }
    out
}

/// How many bytes of a line fit into so many columns: whole words, if there are any, and at least one
/// character.
fn fits(line: &str, room: usize) -> usize {
    let (mut columns, mut word) = (0, None);
    for (at, char) in line.char_indices() {
        columns += match char.is_ascii() {
            true => 1,
            false => measure_text_width(char.encode_utf8(&mut [0; 4])),
        };
        if columns > room && at > 0 {
            return word.unwrap_or(at);
        }
        if char == ' ' && columns > room / 2 {
            word = Some(at + 1);
        }
    }
    line.len()
}

/// Where the log goes: standard error, with no more than the colors of the log itself.
#[derive(Debug)]
pub(crate) struct Log;

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let mut shown = String::with_capacity(text.len());
        let mut left = &*text;
        while let Some(at) = left.find('\u{1b}') {
            let color = left.get(at..).and_then(log_color).unwrap_or_default();
            shown.push_str(&visible(&left[..at]));
            match color {
                // Not a color of the log: shown as what it is.
                "" => shown.push_str("\\u{1b}"),
                color => shown.push_str(color),
            }
            left = &left[at + color.len().max(1)..];
        }
        shown.push_str(&visible(left));
        io::stderr().lock().write_all(one_event(&shown).as_bytes()).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().lock().flush()
    }
}

/// An event of the log whose further lines, if it has some, cannot pass for events.
fn one_event(text: &str) -> Cow<'_, str> {
    let event = text.trim_end_matches('\n');
    match event.contains('\n') {
        true => format!("{}\n", event.replace('\n', "\n    ")).into(),
        false => text.into(),
    }
}

/// The sequence at the beginning of a text, if the log writes it.
fn log_color(text: &str) -> Option<&str> {
    const COLORS: [&str; 9] = ["0", "1", "2", "3", "31", "32", "33", "34", "35"];
    let end = text.find('m')?;
    let number = text.get(..end)?.strip_prefix("\u{1b}[")?;
    COLORS.contains(&number).then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::{Paint, hanging_within, log_color, one_event, paint, painted, visible};

    #[test]
    fn only_paint_of_the_program_becomes_escape_sequences() {
        let hostile = "\u{1b}[8mx\u{1b}]0;t\u{7}\u{fdd0}\u{202e}";
        let page = format!("{} {hostile}", paint(Paint::Bold, hostile));
        let shown = painted(&page, true, true);
        // The mark that stands in the raw text can do no more than paint.
        assert_eq!(
            shown,
            "\u{1b}[1mx\\u{1b}]0;t\\u{7}\\u{fdd0}\\u{202e}\u{1b}[0m x\\u{1b}]0;t\\u{7}\u{1b}[1m\\u{202e}"
        );
        assert!(!painted(&page, true, false).contains('\u{1b}'));
    }

    #[test]
    fn json_on_a_terminal_is_still_json() {
        assert_eq!(visible("{\"a\": \"\u{202e}\"}"), "{\"a\": \"\\u202e\"}");
        assert_eq!(visible("a \u{202e}"), "a \\u{202e}");
    }

    #[test]
    fn what_others_say_never_begins_a_line() {
        let said = hanging_within("| ", "| ", "a\nerror: b\r? Password", None);
        assert_eq!(said, "| a\n| error: b\n| ? Password");
        let filled = format!("{}Password:", "-".repeat(37));
        let said = hanging_within("error: ", "       ", &filled, Some(40));
        assert!(said.lines().skip(1).all(|line| line.starts_with("       ")), "{said}");
        assert!(said.lines().all(|line| line.chars().count() < 40), "{said}");
        assert_eq!(
            hanging_within("| ", "| ", "some words that are long", Some(21)).lines().count(),
            2
        );
    }

    #[test]
    fn line_end_in_an_event_begins_no_other_event() {
        assert_eq!(one_event("WARN one\n"), "WARN one\n");
        assert_eq!(one_event("WARN one\nINFO forged\n"), "WARN one\n    INFO forged\n");
    }

    #[test]
    fn a_log_has_its_own_colors_and_no_others() {
        assert_eq!(log_color("\u{1b}[33mWARN"), Some("\u{1b}[33m"));
        for text in ["\u{1b}[8mx", "\u{1b}[2Jm", "\u{1b}]0;m", "\u{1b}"] {
            assert_eq!(log_color(text), None, "{text:?}");
        }
    }
}

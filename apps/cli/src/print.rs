//! All output of the program to standard output and standard error.
//!
//! Standard output carries data: exact in a pipe, escaped on a terminal (`outlive::text`). Standard
//! error carries messages and is always escaped. Text from a server, tool or caller therefore
//! cannot control the terminal. `cargo xtask tidy` rejects every other way to print.

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

/// Returns whether standard output is a terminal.
pub(crate) fn is_shown() -> bool {
    *IS_SHOWN
}

/// Prefix of each line of a server or tool.
const GUTTER: &str = "| ";

/// Style of the program's own text on a terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Paint {
    Bold,
    Dim,
    Cyan,
    Green,
    Yellow,
    Red,
}

/// Marks for the styles of `Paint`, in its order, and the mark that ends a style.
///
/// The marks are Unicode noncharacters. Escaped text never contains them.
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

/// Marks a text with a style, for `page` and `say_painted`.
pub(crate) fn paint(paint: Paint, text: &str) -> String {
    let (mark, _) = MARKS[paint as usize];
    format!("{mark}{}{}", text::lines(text), PLAIN.0)
}

/// Returns a number with its noun, which has an `s` unless the number is one.
pub(crate) fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

/// Writes data and a newline to standard output.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let shown = if *IS_SHOWN { visible(text) } else { Cow::Borrowed(text) };
    to_stdout(&shown)
}

/// Writes a page of the program, which may have styles, to standard output.
pub(crate) fn page(text: &str) -> io::Result<()> {
    to_stdout(&painted(text, *IS_SHOWN, console::colors_enabled()))
}

/// Writes a message to standard error. Ignores a closed standard error.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", visible(text));
}

/// Writes sentences to standard error, wrapped between words on a terminal.
///
/// Not for lines with commands of other programs: a line break inside would break copy and paste.
pub(crate) fn say_wrapped(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", wrapped(&visible(text), columns()));
}

/// Writes a message that may have styles to standard error.
pub(crate) fn say_painted(text: &str) {
    let shown = painted(text, true, console::colors_enabled_stderr());
    let _ = writeln!(io::stderr().lock(), "{shown}");
}

/// Writes a prompt to standard error, without a newline.
pub(crate) fn prompt(text: &str) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write!(out, "{}", text::line(text)).and_then(|()| out.flush())
}

/// Writes bytes to standard output without escaping.
///
/// Only for bytes that the program generates: completion scripts, and lines for the parent process.
pub(crate) fn own(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush())
}

/// Writes a formatted message to standard error, like `eprintln!`.
macro_rules! talk {
    ($($words:tt)*) => { $crate::print::say(&format!($($words)*)) };
}
pub(crate) use talk;

/// Writes formatted sentences to standard error, wrapped between words on a terminal.
macro_rules! tell {
    ($($words:tt)*) => { $crate::print::say_wrapped(&format!($($words)*)) };
}
pub(crate) use tell;

/// Escapes a text for a terminal. JSON stays valid JSON.
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

/// Completes when the reader of standard output closes the pipe, even before a write fails.
///
/// Never completes if standard output is not a pipe.
pub(crate) async fn reader_left() {
    #[cfg(unix)]
    if let Some(out) = pipe()
        && out.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending().await
}

/// Returns standard output for watching only. Other processes may share the pipe and need it in
/// blocking mode.
#[cfg(unix)]
fn pipe() -> Option<Sender> {
    let out = io::stdout();
    if out.is_terminal() {
        return None;
    }
    Sender::from_owned_fd_unchecked(out.as_fd().try_clone_to_owned().ok()?).ok()
}

/// Prefixes each line of a peer's text and wraps it at the terminal's width, so that no line can
/// imitate the program's own output.
pub(crate) fn quoted(text: &str) -> String {
    hanging(GUTTER, GUTTER, text)
}

/// Wraps text at the terminal's width. The first line starts with `first`, all others with `rest`.
pub(crate) fn hanging(first: &str, rest: &str, text: &str) -> String {
    hanging_within(first, rest, text, columns())
}

/// Returns the width of the terminal of standard error. A narrow terminal wraps lines itself.
fn columns() -> Option<usize> {
    const NARROWEST: usize = 20;
    let columns = Term::stderr().size_checked().map(|(_, columns)| usize::from(columns));
    columns.filter(|columns| *columns >= NARROWEST)
}

/// Wraps the lines of a message between words. Continuation lines are indented.
fn wrapped(text: &str, columns: Option<usize>) -> Cow<'_, str> {
    let Some(columns) = columns else { return Cow::Borrowed(text) };
    let room = columns - 1;
    if text.lines().all(|line| measure_text_width(line) <= room) {
        return Cow::Borrowed(text);
    }
    let lines: Vec<String> = text.split('\n').map(|line| wrapped_line(line, room)).collect();
    Cow::Owned(lines.join("\n"))
}

/// Wraps a line between words. A word that is too long stays whole, and so does a command of this
/// program with all text after it: a line break inside would break copy and paste.
fn wrapped_line(line: &str, room: usize) -> String {
    if measure_text_width(line) <= room {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start_matches(' ').len() + 2;
    let indent = " ".repeat(indent.min(room / 2));
    let (mut out, mut used, mut has_word) = (String::with_capacity(line.len() + 8), 0, false);
    let mut left = line;
    while !left.is_empty() {
        let is_command = left.trim_start_matches('`').starts_with("outlive ");
        let end = left.find(' ').filter(|_| !is_command).map_or(left.len(), |space| space + 1);
        let word;
        (word, left) = left.split_at(end);
        if has_word && used + measure_text_width(word.trim_end_matches(' ')) > room {
            out.truncate(out.trim_end_matches(' ').len());
            out.extend(["\n", &indent]);
            (used, has_word) = (indent.len(), false);
        }
        out.push_str(word);
        used += measure_text_width(word);
        has_word |= word != " ";
    }
    out
}

fn hanging_within(first: &str, rest: &str, text: &str, width: Option<usize>) -> String {
    let room = width.map(|width| width - 1);
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

/// Returns the number of bytes of `line` that fit into `room` columns.
///
/// Breaks between words if possible. The result covers at least one character.
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

/// Writer of the log: standard error, with only the color sequences that the log itself uses.
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
                // Not a color sequence of the log.
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

/// Indents the continuation lines of a log event, so that none can imitate an event.
fn one_event(text: &str) -> Cow<'_, str> {
    let event = text.trim_end_matches('\n');
    match event.contains('\n') {
        true => format!("{}\n", event.replace('\n', "\n    ")).into(),
        false => text.into(),
    }
}

/// Returns the color sequence at the start of a text, if the log uses that sequence.
fn log_color(text: &str) -> Option<&str> {
    const COLORS: [&str; 9] = ["0", "1", "2", "3", "31", "32", "33", "34", "35"];
    let end = text.find('m')?;
    let number = text.get(..end)?.strip_prefix("\u{1b}[")?;
    COLORS.contains(&number).then(|| &text[..=end])
}

#[cfg(test)]
mod tests {
    use super::{Paint, hanging_within, log_color, one_event, paint, painted, visible, wrapped};

    #[test]
    fn only_paint_of_the_program_becomes_escape_sequences() {
        let hostile = "\u{1b}[8mx\u{1b}]0;t\u{7}\u{fdd0}\u{202e}";
        let page = format!("{} {hostile}", paint(Paint::Bold, hostile));
        let shown = painted(&page, true, true);
        // The mark in the unescaped text can only set a style.
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
    fn quoted_text_lines_always_start_with_prefix() {
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
    fn message_is_wrapped_between_words_with_indent() {
        let said = "the command is empty or has an unclosed quote\n  short\n";
        let lines = "the command is empty or has\n  an unclosed quote\n  short\n";
        assert_eq!(wrapped(said, Some(30)), lines);
        assert_eq!(wrapped(said, Some(80)), said);
        assert_eq!(wrapped(said, None), said);
        let indented = wrapped("  host: example.com and other words", Some(24));
        assert_eq!(indented, "  host: example.com and\n    other words");
    }

    #[test]
    fn message_with_long_word_or_command_keeps_it_whole() {
        let url = format!("open https://example.com/{}", "a".repeat(40));
        assert_eq!(wrapped(&url, Some(30)), url.replacen(' ', "\n  ", 1));
        let said = "input required; answer with: outlive tasks answer 01HX --accept";
        let lines = "input required; answer with:\n  outlive tasks answer 01HX --accept";
        assert_eq!(wrapped(said, Some(40)), lines);
        let said = "Not logged in. Run `outlive login URL` to log in.";
        assert_eq!(wrapped(said, Some(30)), "Not logged in. Run\n  `outlive login URL` to log in.");
    }

    #[test]
    fn log_event_with_newline_is_indented() {
        assert_eq!(one_event("WARN one\n"), "WARN one\n");
        assert_eq!(one_event("WARN one\nINFO forged\n"), "WARN one\n    INFO forged\n");
    }

    #[test]
    fn log_color_accepts_only_colors_of_the_log() {
        assert_eq!(log_color("\u{1b}[33mWARN"), Some("\u{1b}[33m"));
        for text in ["\u{1b}[8mx", "\u{1b}[2Jm", "\u{1b}]0;m", "\u{1b}"] {
            assert_eq!(log_color(text), None, "{text:?}");
        }
    }
}

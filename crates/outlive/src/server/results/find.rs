//! [`Finder`]: finds the lines of a text that contain another text, part by part.

use std::fmt::Write as _;

/// Maximum bytes of all found lines.
const MAX_OUTPUT: usize = 16 << 10;

/// Bytes that are shown of a long line, before and after the found text.
const BEFORE: usize = 120;
const AFTER: usize = 280;

/// Bytes of a line that are kept until its end. Of a longer line only the end is kept.
const WINDOW: usize = 8 << 10;

/// Maximum bytes of the text to find.
pub(crate) const MAX_NEEDLE: usize = 1_024;

/// Searches a text, which is fed in parts that can end inside a line or a character.
pub(crate) struct Finder {
    needle: Vec<u8>,
    /// Number of the current line.
    line: u64,
    /// The current line so far, or the end of it.
    kept: Vec<u8>,
    /// Whether `kept` lacks the start of the current line.
    is_cut: bool,
    /// Whether the current line contains the needle.
    is_hit: bool,
    output: String,
    hits: u64,
    shown: u64,
}

/// Lines that contain a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// The first lines, with their numbers.
    pub(crate) output: String,
    /// Number of lines that contain the text.
    pub(crate) hits: u64,
    /// Number of lines in `output`.
    pub(crate) shown: u64,
}

impl Finder {
    /// Creates a search for a text of at least one byte.
    pub(crate) fn new(needle: &str) -> Self {
        Self {
            needle: needle.as_bytes().to_vec(),
            line: 1,
            kept: Vec::new(),
            is_cut: false,
            is_hit: false,
            output: String::new(),
            hits: 0,
            shown: 0,
        }
    }

    /// Searches the next part.
    pub(crate) fn feed(&mut self, part: &[u8]) {
        let mut rest = part;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.push(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.push(rest);
    }

    /// Ends the search.
    pub(crate) fn finish(mut self) -> Found {
        self.search();
        Found { output: self.output, hits: self.hits, shown: self.shown }
    }

    fn push(&mut self, piece: &[u8]) {
        for piece in piece.chunks(WINDOW) {
            self.kept.extend_from_slice(piece);
            if self.kept.len() > WINDOW {
                self.search();
                // The needle may begin here and end in the next piece.
                let keep = self.needle.len() + BEFORE;
                self.kept.drain(..self.kept.len().saturating_sub(keep));
                self.is_cut = true;
            }
        }
    }

    fn end_line(&mut self) {
        self.search();
        self.line += 1;
        self.kept.clear();
        (self.is_cut, self.is_hit) = (false, false);
    }

    fn search(&mut self) {
        if self.is_hit {
            return;
        }
        let Some(at) = position(&self.kept, &self.needle) else { return };
        self.is_hit = true;
        self.hits += 1;
        if self.output.len() < MAX_OUTPUT {
            self.shown += 1;
            let line = excerpt(&self.kept, at, self.needle.len(), self.is_cut);
            let _ = writeln!(self.output, "{}: {line}", self.line);
        }
    }
}

/// Returns the position of a text in bytes that may start or end inside a character.
fn position(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    match (std::str::from_utf8(bytes), std::str::from_utf8(needle)) {
        (Ok(text), Ok(needle)) => text.find(needle),
        _ => bytes.windows(needle.len()).position(|window| window == needle),
    }
}

/// Returns a line, or the part of a long line around the found text.
fn excerpt(line: &[u8], at: usize, needle: usize, is_cut: bool) -> String {
    let start = if line.len() > BEFORE + AFTER { at.saturating_sub(BEFORE) } else { 0 };
    let end = line.len().min(at + needle + AFTER);
    let text = String::from_utf8_lossy(&line[start..end]);
    // A character that the excerpt cuts is left out.
    let text = text.trim_matches('\u{fffd}').trim_end_matches('\r');
    let (before, after) = (start > 0 || is_cut, end < line.len());
    format!("{}{text}{}", if before { "…" } else { "" }, if after { "…" } else { "" })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Finder, Found, MAX_OUTPUT};

    fn find(text: &str, needle: &str, part: usize) -> Found {
        let mut finder = Finder::new(needle);
        text.as_bytes().chunks(part).for_each(|part| finder.feed(part));
        finder.finish()
    }

    #[test]
    fn lines_with_text_are_found_across_parts() {
        let text = "first\nan ERROR ü\nfine\nlast ERROR";
        for part in 1..text.len() {
            let found = find(text, "ERROR", part);
            assert_eq!(found.output, "2: an ERROR ü\n4: last ERROR\n", "{part}");
            assert_eq!((found.hits, found.shown), (2, 2));
        }
        assert_eq!(find(text, "nothing", 5), Found::default());
    }

    #[test]
    fn line_of_5_mb_is_shown_around_the_text() {
        let text = format!("{}ERROR{}\nERROR", "x".repeat(3 << 20), "y".repeat(2 << 20));
        let found = find(&text, "ERROR", 64 << 10);
        assert_eq!(found.hits, 2);
        let (first, second) = found.output.split_once('\n').unwrap();
        assert!(first.starts_with("1: …xxx") && first.contains("xERRORy"), "{first}");
        assert!(first.len() < 600, "{}", first.len());
        assert_eq!(second, "2: ERROR\n");
    }

    #[test]
    fn output_is_bounded_and_all_hits_are_counted() {
        let found = find(&"ERROR in a line of a log\n".repeat(50_000), "ERROR", 64 << 10);
        assert_eq!(found.hits, 50_000);
        assert!(found.shown < 1_000 && found.output.len() < MAX_OUTPUT + 100);
    }

    proptest! {
        #[test]
        fn found_lines_are_those_that_contain_the_text(
            lines in proptest::collection::vec("[abä]{0,8}", 0..30),
            needle in "[abä]{1,3}",
            part in 1_usize..20,
        ) {
            let found = find(&lines.join("\n"), &needle, part);
            let expected: String = (1..).zip(&lines).filter(|(_, line)| line.contains(&needle))
                .map(|(number, line)| format!("{number}: {line}\n")).collect();
            prop_assert_eq!(found.output, expected);
        }
    }
}

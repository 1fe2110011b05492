//! Splits the output of a process into lines of bounded length.

use super::line::from_server::MAX_LINE;

/// Bytes at the start of a longer line that are retained, to name its message.
const HEAD: usize = 1 << 10;

/// Bytes at its end that are retained, because the nonce may be the last member.
const TAIL: usize = 256;

/// Splits bytes into lines.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    line: Vec<u8>,
    /// The end of a line that is too long.
    tail: Vec<u8>,
    is_too_long: bool,
}

/// A line without its line feed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadLine<'a> {
    Line(&'a [u8]),
    /// The start and the end of a line above the limit.
    TooLong(&'a [u8]),
}

impl Lines {
    /// Calls `each` with every line that the chunk completes.
    pub(crate) fn push(&mut self, chunk: &[u8], mut each: impl FnMut(ReadLine<'_>)) {
        let mut rest = chunk;
        while let Some(at) = memchr::memchr(b'\n', rest) {
            let (part, after) = (&rest[..at], &rest[at + 1..]);
            // Most chunks have whole lines, which need no copy.
            match self.line.is_empty() && !self.is_too_long && part.len() <= MAX_LINE {
                true => each(ReadLine::Line(part)),
                false => {
                    self.add(part);
                    self.finish(&mut each);
                }
            }
            rest = after;
        }
        self.add(rest);
    }

    /// Calls `each` with an incomplete line at the end of the output.
    pub(crate) fn end(&mut self, mut each: impl FnMut(ReadLine<'_>)) {
        if !self.line.is_empty() {
            self.finish(&mut each);
        }
    }

    fn add(&mut self, part: &[u8]) {
        if self.is_too_long {
            return self.add_to_tail(part);
        }
        self.line.extend_from_slice(part);
        if self.line.len() > MAX_LINE {
            self.is_too_long = true;
            self.tail = self.line.split_off(self.line.len() - TAIL);
            self.line.truncate(HEAD);
            self.line.shrink_to_fit();
        }
    }

    fn add_to_tail(&mut self, part: &[u8]) {
        let last = &part[part.len().saturating_sub(TAIL)..];
        let excess = (self.tail.len() + last.len()).saturating_sub(TAIL);
        self.tail.drain(..excess);
        self.tail.extend_from_slice(last);
    }

    fn finish(&mut self, each: &mut impl FnMut(ReadLine<'_>)) {
        match std::mem::take(&mut self.is_too_long) {
            true => {
                self.line.append(&mut self.tail);
                each(ReadLine::TooLong(&self.line));
            }
            false => each(ReadLine::Line(&self.line)),
        }
        self.line.clear();
        // A long line must not occupy memory until the process ends.
        self.line.shrink_to(64 << 10);
    }
}

/// Returns the call of a line above the limit, and the name of its message. `head` is the start and the
/// end of the line. Returns `None` for output.
pub(crate) fn sender_of(head: &[u8], nonce: &str) -> Option<(u64, &'static str)> {
    const NAMES: [&str; 8] =
        ["done", "emit", "return", "result", "input", "failed", "error", "status_message"];
    let head = String::from_utf8_lossy(head);
    let is_message = head.starts_with('{') && head.contains(nonce);
    let (_, after) = head.split_once("\"call\":").filter(|_| is_message)?;
    let digits: String = after.trim_start().chars().take_while(char::is_ascii_digit).collect();
    let name = NAMES.into_iter().find(|name| head.contains(&format!("\"{name}\":")));
    Some((digits.parse().ok()?, name.unwrap_or("message")))
}

#[cfg(test)]
mod tests {
    use super::{HEAD, Lines, MAX_LINE, ReadLine, TAIL, sender_of};

    fn split(chunks: &[&[u8]]) -> Vec<(usize, bool)> {
        let mut lines = Lines::default();
        let mut read = Vec::new();
        let mut each = |line: ReadLine<'_>| {
            read.push(match line {
                ReadLine::Line(line) => (line.len(), true),
                ReadLine::TooLong(head) => (head.len(), false),
            });
        };
        for chunk in chunks {
            lines.push(chunk, &mut each);
        }
        lines.end(&mut each);
        read
    }

    #[test]
    fn lines_are_equal_for_any_chunks() {
        let text = b"a\n\nbcd\ne";
        let whole = [(1, true), (0, true), (3, true), (1, true)];
        assert_eq!(split(&[text]), whole);
        for at in 0..text.len() {
            assert_eq!(split(&[&text[..at], &text[at..]]), whole, "{at}");
        }
    }

    #[test]
    fn line_above_limit_is_reported_with_its_start() {
        let long = vec![b'x'; MAX_LINE + 1];
        assert_eq!(split(&[&long[..MAX_LINE], b"\nb\n"]), [(MAX_LINE, true), (1, true)]);
        let kept = HEAD + TAIL;
        assert_eq!(split(&[&long, b"yyy", b"\nb\n"]), [(kept, false), (1, true)]);
        let one_chunk: Vec<u8> = long.iter().copied().chain(*b"\nb\n").collect();
        assert_eq!(split(&[&one_chunk]), [(kept, false), (1, true)]);
        assert_eq!(split(&[&long]), [(kept, false)]);
    }

    #[test]
    fn long_line_keeps_its_end_for_any_chunks() {
        let text = format!("{{{}\"nonce\":\"7c1e\"}}", "x".repeat(MAX_LINE));
        for size in [1 << 16, 100_003, MAX_LINE, 2 * MAX_LINE] {
            let mut lines = Lines::default();
            let mut ends = Vec::new();
            for chunk in format!("{text}\n").as_bytes().chunks(size) {
                lines.push(chunk, |line| {
                    let ReadLine::TooLong(line) = line else { panic!("the line is too long") };
                    ends.push(line.ends_with(br#""nonce":"7c1e"}"#));
                });
            }
            assert_eq!(ends, [true], "{size}");
        }
    }

    #[test]
    fn sender_of_long_line_is_its_call() {
        let sender = |head: &str| sender_of(head.as_bytes(), "7c1e");
        let done = r#"{"nonce":"7c1e","call": 12,"done":"build","value":"xxx"#;
        assert_eq!(sender(done), Some((12, "done")));
        assert_eq!(sender(r#"{"call":3,"nonce":"7c1e","emit":{"type"#), Some((3, "emit")));
        assert_eq!(sender(r#"{"call":3,"emit":{"type"#), None);
        assert_eq!(sender("xxx 7c1e \"call\":3"), None);
    }
}

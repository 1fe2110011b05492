//! Splits the output of a process into lines of a limited length.

use bytes::Bytes;

use super::long_line::LongLine;

/// Capacity that the buffer keeps after a long line.
const RETAINED: usize = 64 << 10;

/// Output of a process that was read and not returned as lines.
#[derive(Debug)]
pub(super) struct Lines {
    buffer: Vec<u8>,
    /// Start of the next line in the buffer.
    start: usize,
    /// End of the part of the buffer that contains no line break.
    searched: usize,
    /// Maximum bytes of a line.
    max: usize,
    /// The start of a line that is too long, whose rest is skipped.
    long: Option<LongLine>,
}

/// A line without white space around it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Message(Bytes),
    TooLong(LongLine),
}

impl Lines {
    pub(super) fn new(max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, max, long: None }
    }

    pub(super) fn push(&mut self, chunk: &[u8]) {
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > RETAINED {
            self.buffer.shrink_to(RETAINED);
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the next line. Skips empty lines.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                if self.long.is_some() || self.searched - self.start > self.max {
                    self.long.get_or_insert_default().push(&self.buffer[self.start..]);
                    self.buffer.clear();
                    (self.start, self.searched) = (0, 0);
                }
                return None;
            };
            let end = self.searched + end;
            let line = self.buffer[self.start..end].trim_ascii();
            let line = match self.long.take() {
                Some(mut long) => {
                    long.push(line);
                    Some(Line::TooLong(long))
                }
                None if line.len() > self.max => Some(Line::TooLong(LongLine::new(line))),
                None if line.is_empty() => None,
                None => Some(Line::Message(Bytes::copy_from_slice(line))),
            };
            (self.start, self.searched) = (end + 1, end + 1);
            if line.is_some() {
                return line;
            }
        }
    }

    /// Ends the output: the rest is a line.
    pub(super) fn finish(&mut self) {
        if self.start < self.buffer.len() || self.long.is_some() {
            self.push(b"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Lines};

    /// The lines, with `long` in place of those that are too long.
    fn all(lines: &mut Lines) -> Vec<String> {
        let text = |line| match line {
            Line::Message(line) => String::from_utf8(line.to_vec()).unwrap(),
            Line::TooLong(_) => "long".to_owned(),
        };
        std::iter::from_fn(|| lines.next()).map(text).collect()
    }

    #[test]
    fn lines_are_independent_of_chunks() {
        let text = b"one\r\n\n  two \nthree";
        for size in 1..text.len() {
            let mut lines = Lines::new(100);
            let mut found = Vec::new();
            for chunk in text.chunks(size) {
                lines.push(chunk);
                found.extend(all(&mut lines));
            }
            lines.finish();
            found.extend(all(&mut lines));
            assert_eq!(found, ["one", "two", "three"], "{size}");
        }
    }

    #[test]
    fn line_that_is_too_long_is_skipped_in_bounded_memory() {
        let mut lines = Lines::new(10);
        for _ in 0..1000 {
            lines.push(b"0123456789");
            assert_eq!(lines.next(), None);
            assert!(lines.buffer.len() <= 20);
        }
        lines.push(b"\n0123456789\n01234567890\nafter\n");
        assert_eq!(all(&mut lines), ["long", "0123456789", "long", "after"]);
        lines.push(b"01234567890123456789");
        assert_eq!(lines.next(), None);
        lines.finish();
        assert_eq!(all(&mut lines), ["long"]);
    }
}

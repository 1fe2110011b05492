//! Splits the output of a process into lines of a limited length.

use bytes::Bytes;

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
    /// Whether the rest of a line that is too long is skipped.
    skips: bool,
}

impl Lines {
    pub(super) fn new(max: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, searched: 0, max, skips: false }
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

    /// Returns the next line, without white space around it. Skips empty lines and those that are
    /// too long.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(end) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                if self.searched - self.start > self.max {
                    self.buffer.clear();
                    (self.start, self.searched, self.skips) = (0, 0, true);
                }
                return None;
            };
            let end = self.searched + end;
            let line = self.buffer[self.start..end].trim_ascii();
            let is_skipped = std::mem::take(&mut self.skips) || line.len() > self.max;
            let line = (!is_skipped && !line.is_empty()).then(|| Bytes::copy_from_slice(line));
            (self.start, self.searched) = (end + 1, end + 1);
            if line.is_some() {
                return line;
            }
        }
    }

    /// Ends the output: the rest is a line.
    pub(super) fn finish(&mut self) {
        if self.start < self.buffer.len() {
            self.push(b"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lines;

    fn all(lines: &mut Lines) -> Vec<String> {
        std::iter::from_fn(|| lines.next())
            .map(|line| String::from_utf8(line.to_vec()).unwrap())
            .collect()
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
        assert_eq!(all(&mut lines), ["0123456789", "after"]);
    }
}

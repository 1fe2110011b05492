//! Splits a byte stream into messages at line breaks.

use bytes::{Bytes, BytesMut};

/// Buffers bytes until a line is complete.
#[derive(Debug)]
pub(crate) struct Splitter {
    buffer: BytesMut,
    /// Number of bytes in the buffer that contain no line break.
    searched: usize,
    limit: usize,
    /// Whether the current line is too long. All bytes up to its end are discarded.
    skipping: bool,
}

/// Output of a [`Splitter`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A line without its line break. Never blank.
    Line(Bytes),
    /// A line exceeded the limit and was discarded.
    TooLong,
}

impl Splitter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, skipping: false }
    }

    /// Adds received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete line.
    pub(crate) fn next(&mut self) -> Option<Piece> {
        loop {
            let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                return self.overlong();
            };
            let line = self.buffer.split_to(self.searched + at + 1);
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            match line.len() - 1 {
                length if length > self.limit => return Some(Piece::TooLong),
                _ if line.trim_ascii().is_empty() => {}
                length => return Some(Piece::Line(line.freeze().slice(..length))),
            }
        }
    }

    /// Returns the last line of a stream that ended without a line break.
    pub(crate) fn rest(&mut self) -> Option<Piece> {
        let rest = self.buffer.split();
        self.searched = 0;
        let blank = rest.trim_ascii().is_empty();
        (!blank && !self.skipping).then(|| Piece::Line(rest.freeze()))
    }

    fn overlong(&mut self) -> Option<Piece> {
        self.searched = self.buffer.len();
        if self.buffer.len() <= self.limit {
            return None;
        }
        self.buffer.clear();
        self.searched = 0;
        // A line that is too long is reported once, not for each of its chunks.
        (!std::mem::replace(&mut self.skipping, true)).then_some(Piece::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::{Piece, Splitter};

    fn pieces(limit: usize, chunks: &[&str]) -> Vec<String> {
        let mut splitter = Splitter::new(limit);
        let mut seen = Vec::new();
        let mut note = |piece| {
            seen.push(match piece {
                Piece::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                Piece::TooLong => "<too long>".into(),
            });
        };
        for chunk in chunks {
            splitter.push(chunk.as_bytes());
            while let Some(piece) = splitter.next() {
                note(piece);
            }
        }
        splitter.rest().into_iter().for_each(note);
        seen
    }

    #[test]
    fn lines_are_split_independently_of_chunk_boundaries() {
        assert_eq!(pieces(9, &["a\nb", "c\n", "\n", " \r\n", "d"]), ["a", "bc", "d"]);
    }

    #[test]
    fn line_over_the_limit_is_reported_once_and_skipped() {
        assert_eq!(pieces(3, &["12345", "678", "9\nok\n"]), ["<too long>", "ok"]);
        assert_eq!(pieces(3, &["12345\nok\n"]), ["<too long>", "ok"]);
        assert_eq!(pieces(3, &["123\n"]), ["123"]);
    }
}

//! Cuts a stream of bytes into messages at line ends.

use bytes::{Bytes, BytesMut};

/// Collects bytes until they are a line.
#[derive(Debug)]
pub(crate) struct Splitter {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    searched: usize,
    limit: usize,
    /// Inside a line that was too long: everything up to its end is thrown away.
    skipping: bool,
}

/// What comes out of a [`Splitter`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A line that is not blank, without its end.
    Line(Bytes),
    /// A line was longer than the limit; it has been thrown away.
    TooLong,
}

impl Splitter {
    pub(crate) fn new(limit: usize) -> Self {
        Self { buffer: BytesMut::new(), searched: 0, limit, skipping: false }
    }

    /// Adds what has been read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Takes the next line, if it has arrived.
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

    /// What is left when the stream has ended without a last line end.
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
        // Said once, when the limit is crossed, not for every chunk after it.
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
    fn lines_are_cut_wherever_the_chunks_end() {
        assert_eq!(pieces(9, &["a\nb", "c\n", "\n", " \r\n", "d"]), ["a", "bc", "d"]);
    }

    #[test]
    fn a_line_over_the_limit_is_reported_once_and_the_next_one_is_read() {
        assert_eq!(pieces(3, &["12345", "678", "9\nok\n"]), ["<too long>", "ok"]);
        assert_eq!(pieces(3, &["12345\nok\n"]), ["<too long>", "ok"]);
        assert_eq!(pieces(3, &["123\n"]), ["123"]);
    }
}

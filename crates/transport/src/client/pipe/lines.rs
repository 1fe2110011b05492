//! Messages on a byte stream, one per line.

use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{long_line::LongLine, sink::BatchSink};
use crate::messages::Source;

/// Bytes per read.
const CHUNK: usize = 16 << 10;

/// Maximum length of a line in multiples of the limit. Beyond that, the stream is not read further.
const MAX_TIMES: usize = 64;

pub(super) struct LineSource<R> {
    input: R,
    buffer: BytesMut,
    /// Number of bytes in the buffer that contain no line break.
    searched: usize,
    /// The current line, if it exceeds the limit.
    long: Option<LongLine>,
    limit: usize,
    chunk: Vec<u8>,
    ended: bool,
}

impl<R> LineSource<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        let (buffer, chunk) = (BytesMut::new(), vec![0; CHUNK]);
        Self { input, buffer, searched: 0, long: None, limit, chunk, ended: false }
    }

    /// Returns the next line that is complete and not blank, or the reason why it cannot be read.
    fn next(&mut self) -> Option<io::Result<Bytes>> {
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            let (mut line, is_whole) = match found {
                Some(at) => (self.buffer.split_to(self.searched + at + 1), true),
                None if self.ended && !self.buffer.is_empty() => (self.buffer.split(), true),
                None if self.ended && self.long.is_some() => (BytesMut::new(), true),
                None if self.long.is_some() || self.buffer.len() > self.limit => {
                    (self.buffer.split(), false)
                }
                None => {
                    self.searched = self.buffer.len();
                    return None;
                }
            };
            self.searched = 0;
            if line.last() == Some(&b'\n') {
                line.truncate(line.len() - 1);
            }
            if self.long.is_none() && line.len() <= self.limit {
                match line.trim_ascii().is_empty() {
                    true => continue,
                    false => return Some(Ok(line.freeze())),
                }
            }
            let mut long = self.long.take().unwrap_or_default();
            long.push(&line);
            if is_whole {
                return Some(Err(io::Error::new(io::ErrorKind::InvalidData, long)));
            }
            if long.bytes / MAX_TIMES > self.limit {
                return Some(Err(io::Error::new(io::ErrorKind::FileTooLarge, long)));
            }
            self.long = Some(long);
            return None;
        }
    }
}

impl<R: AsyncRead + Unpin + Send> Source for LineSource<R> {
    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(next) = self.next() {
                return next.map(Some);
            }
            if self.ended {
                return Ok(None);
            }
            let read = self.input.read(&mut self.chunk).await?;
            self.buffer.extend_from_slice(&self.chunk[..read]);
            self.ended = read == 0;
        }
    }
}

pub(super) struct LineSink<W> {
    output: W,
    buffer: Vec<u8>,
}

impl<W> LineSink<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, buffer: Vec::new() }
    }
}

impl<W: AsyncWrite + Unpin + Send> BatchSink for LineSink<W> {
    async fn send_all(&mut self, batch: &mut Vec<Bytes>) -> io::Result<()> {
        self.buffer.clear();
        for message in batch.drain(..) {
            self.buffer.extend_from_slice(&message);
            self.buffer.push(b'\n');
        }
        self.output.write_all(&self.buffer).await?;
        self.output.flush().await
    }
}

#[cfg(test)]
mod tests {
    use super::{LineSource, io};
    use crate::messages::Source as _;

    /// Reads all lines of a text, until a line is not read further. A line that exceeds the limit is
    /// its error.
    async fn lines(text: &str, limit: usize) -> Vec<String> {
        let mut source = LineSource::new(text.as_bytes(), limit);
        let mut lines = Vec::new();
        loop {
            match source.receive().await {
                Ok(Some(line)) => lines.push(String::from_utf8(line.to_vec()).unwrap()),
                Ok(None) => return lines,
                Err(error) => {
                    lines.push(error.to_string());
                    if error.kind() == io::ErrorKind::FileTooLarge {
                        return lines;
                    }
                }
            }
        }
    }

    #[tokio::test]
    async fn line_over_the_limit_is_skipped_and_its_size_is_known() {
        let long = "x".repeat(100_000);
        let short = lines("a\n\n \r\nb\n0123456789\nc", 9).await;
        assert_eq!(short, ["a", "b", &too_long(10), "c"]);
        let all = lines(&format!("a\n{long}\nb"), 2_000).await;
        assert_eq!(all, ["a", &too_long(100_000), "b"]);
        assert_eq!(lines(&long, 2_000).await, [too_long(100_000)]);
    }

    #[tokio::test]
    async fn line_of_64_times_the_limit_is_not_read_further() {
        let text = format!("a\n{}\nb", "x".repeat(100_000));
        assert_eq!(lines(&text, 9).await.len(), 2);
    }

    fn too_long(bytes: usize) -> String {
        format!("a line has {bytes} bytes, which exceeds `message_bytes`")
    }
}

//! Messages on a byte stream, one per line.

use std::io;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::sink::BatchSink;
use crate::{
    messages::Source,
    pipe::{Piece, Splitter},
};

/// Bytes per read.
const CHUNK: usize = 16 << 10;

pub(super) struct LineSource<R> {
    input: R,
    splitter: Splitter,
    chunk: Vec<u8>,
    ended: bool,
}

impl<R> LineSource<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self { input, splitter: Splitter::new(limit), chunk: vec![0; CHUNK], ended: false }
    }
}

impl<R: AsyncRead + Unpin + Send> Source for LineSource<R> {
    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            let piece = match self.ended {
                true => self.splitter.next().or_else(|| self.splitter.rest()),
                false => self.splitter.next(),
            };
            match piece {
                Some(Piece::Line(line)) => return Ok(Some(line)),
                Some(Piece::TooLong) => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "a line exceeds `message_bytes`",
                    ));
                }
                None if self.ended => return Ok(None),
                None => {}
            }
            let read = self.input.read(&mut self.chunk).await?;
            self.splitter.push(&self.chunk[..read]);
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

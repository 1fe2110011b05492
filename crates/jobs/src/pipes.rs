//! Server ends of a command's standard streams. None of them blocks.

use std::{collections::VecDeque, future::pending, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    process::{ChildStderr, ChildStdin, ChildStdout},
    time::timeout,
};

/// Standard output.
pub(super) type Stdout = Reading<ChildStdout>;
/// Standard error.
pub(super) type Stderr = Reading<ChildStderr>;

/// A stream that the command writes.
#[derive(Debug)]
pub(super) struct Reading<P> {
    pipe: Option<P>,
    chunk: Box<[u8]>,
}

impl<P: AsyncRead + Unpin> Reading<P> {
    pub(super) fn new(pipe: Option<P>) -> Self {
        Self { pipe, chunk: vec![0; 64 * 1024].into() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.pipe.is_none()
    }

    /// Reads available bytes. Returns an empty slice when the stream closes, and then waits
    /// forever. Cancel-safe.
    pub(super) async fn read(&mut self) -> &[u8] {
        let Some(pipe) = &mut self.pipe else { return pending().await };
        // Reading from a pipe does not fail; an error would mean the end.
        let count = pipe.read(&mut self.chunk).await.unwrap_or(0);
        if count == 0 {
            self.pipe = None;
        }
        &self.chunk[..count]
    }

    /// Reads the remaining output after the command exited, chunk by chunk. Does not wait for the
    /// end of the stream, because an unknown process may still hold the other end.
    pub(super) async fn read_rest(&mut self) -> Option<&[u8]> {
        const UNTIL_SEEN: Duration = Duration::from_millis(100);
        if self.is_closed() {
            return None;
        }
        timeout(UNTIL_SEEN, self.read()).await.ok().filter(|chunk| !chunk.is_empty())
    }
}

#[cfg(unix)]
impl<P: std::os::fd::AsFd> Reading<P> {
    /// Reads bytes that are in the pipe now, even if the runtime has not reported them.
    pub(super) fn read_at_once(&mut self) -> Option<&[u8]> {
        let pipe = self.pipe.as_ref()?;
        // The pipe does not block. `read` handles its end.
        let count = rustix::io::read(pipe, &mut self.chunk[..]).ok().filter(|count| *count > 0)?;
        Some(&self.chunk[..count])
    }
}

/// Standard input.
pub(super) type Stdin = Writing<ChildStdin>;

/// A stream that the command reads.
#[derive(Debug)]
pub(super) struct Writing<P> {
    pipe: Option<P>,
    ahead: VecDeque<u8>,
    /// Whether more lines may follow.
    stays_open: bool,
}

impl<P: AsyncWrite + Unpin> Writing<P> {
    pub(super) fn new(pipe: Option<P>, first: Option<String>, stays_open: bool) -> Self {
        let ahead = first.unwrap_or_default().into_bytes().into();
        Self { pipe, ahead, stays_open }
    }

    /// Queues a line for the command.
    pub(super) fn push(&mut self, line: &str) {
        if self.pipe.is_some() {
            self.ahead.extend(line.as_bytes());
            self.ahead.push_back(b'\n');
        }
    }

    /// Writes queued bytes. Waits forever if none are queued. Cancel-safe.
    pub(super) async fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return pending().await };
        if self.ahead.is_empty() {
            if self.stays_open {
                return pending().await;
            }
            self.pipe = None;
            return;
        }
        match pipe.write(self.ahead.as_slices().0).await {
            Ok(count) => drop(self.ahead.drain(..count)),
            // The command has closed its input, which is allowed.
            Err(_) => {
                self.pipe = None;
                self.ahead = VecDeque::new();
            }
        }
    }
}

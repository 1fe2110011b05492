//! Our ends of a command's standard streams. None of them ever blocks who reads or writes.

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

    /// What is there, and nothing once it is closed. Waits for ever after that. Dropping it loses nothing.
    pub(super) async fn read(&mut self) -> &[u8] {
        let Some(pipe) = &mut self.pipe else { return pending().await };
        // A pipe does not fail to be read; if it did, there would be nothing more to read.
        let count = pipe.read(&mut self.chunk).await.unwrap_or(0);
        if count == 0 {
            self.pipe = None;
        }
        &self.chunk[..count]
    }

    /// What is left when nobody writes any more, each time a part of it. It is closed then; but if somebody has been
    /// handed the other end who is not known to us, that may never be, so it is not waited for.
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
    /// What is in the pipe at this moment, each time a part of it, whether or not the runtime has noticed it.
    pub(super) fn read_at_once(&mut self) -> Option<&[u8]> {
        let pipe = self.pipe.as_ref()?;
        // The pipe does not block. Its end is left for `read` to find.
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
    /// Whether more may come.
    stays_open: bool,
}

impl<P: AsyncWrite + Unpin> Writing<P> {
    pub(super) fn new(pipe: Option<P>, first: Option<String>, stays_open: bool) -> Self {
        let ahead = first.unwrap_or_default().into_bytes().into();
        Self { pipe, ahead, stays_open }
    }

    /// A line for the command to find, whenever it reads.
    pub(super) fn push(&mut self, line: &str) {
        if self.pipe.is_some() {
            self.ahead.extend(line.as_bytes());
            self.ahead.push_back(b'\n');
        }
    }

    /// Writes some of what is ahead; waits for ever when there is nothing to do. Dropping it loses nothing.
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
            // The command does not want to know. That is its right.
            Err(_) => {
                self.pipe = None;
                self.ahead = VecDeque::new();
            }
        }
    }
}

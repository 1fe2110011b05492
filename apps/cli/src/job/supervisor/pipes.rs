//! The command's ends of its standard streams. None of them ever blocks the supervisor.

use std::{collections::VecDeque, future::pending, os::fd::OwnedFd};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::unix::pipe::{Receiver, Sender},
};

/// Standard output or standard error.
#[derive(Debug)]
pub(super) struct Reading {
    pipe: Option<Receiver>,
    chunk: Box<[u8]>,
}

impl Reading {
    pub(super) fn new(end: Option<OwnedFd>) -> Self {
        let pipe = end.and_then(|end| Receiver::from_owned_fd(end).ok());
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

    /// What is there already.
    pub(super) fn read_rest(&mut self) -> Option<&[u8]> {
        let count = self.pipe.as_mut()?.try_read(&mut self.chunk).ok()?;
        (count > 0).then(|| &self.chunk[..count])
    }
}

/// Standard input.
#[derive(Debug)]
pub(super) struct Writing {
    pipe: Option<Sender>,
    ahead: VecDeque<u8>,
    /// Whether more may come.
    stays_open: bool,
}

impl Writing {
    pub(super) fn new(end: Option<OwnedFd>, first: Option<String>, stays_open: bool) -> Self {
        let pipe = end.and_then(|end| Sender::from_owned_fd(end).ok());
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

    /// After what is ahead, the command finds the end.
    pub(super) fn close(&mut self) {
        self.stays_open = false;
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

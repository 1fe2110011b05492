//! Standard input of a process: messages that wait to be written.

use std::{collections::VecDeque, future::pending};

use bytes::{Buf, Bytes};
use tokio::{io::AsyncWriteExt, process::ChildStdin, sync::OwnedSemaphorePermit};

/// Bytes of gateways' messages that may wait to be written. The connections wait for room.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// Standard input of a process.
#[derive(Debug)]
pub(super) struct Input {
    pipe: Option<ChildStdin>,
    /// Messages with their line breaks.
    waiting: VecDeque<(Bytes, Option<OwnedSemaphorePermit>)>,
    /// Whether the input is closed after the last message.
    closes: bool,
}

impl Input {
    pub(super) fn new(pipe: Option<ChildStdin>) -> Self {
        Self { pipe, waiting: VecDeque::new(), closes: false }
    }

    /// Queues a message that ends with a line break.
    pub(super) fn push(&mut self, message: Bytes, room: Option<OwnedSemaphorePermit>) {
        if self.pipe.is_some() && !self.closes && !message.is_empty() {
            self.waiting.push_back((message, room));
        }
    }

    /// Closes the input after the last message.
    pub(super) fn close(&mut self) {
        self.closes = true;
    }

    /// Writes queued bytes. Waits forever if none are queued. Cancel safe.
    pub(super) async fn write(&mut self) {
        let Some(pipe) = &mut self.pipe else { return pending().await };
        let Some((message, _)) = self.waiting.front_mut() else {
            if !self.closes {
                return pending().await;
            }
            self.pipe = None;
            return;
        };
        match pipe.write(&message[..]).await {
            Ok(count) => {
                message.advance(count);
                if message.is_empty() {
                    self.waiting.pop_front();
                }
            }
            // The process has closed its input, which is allowed.
            Err(_) => {
                self.pipe = None;
                self.waiting.clear();
            }
        }
    }
}

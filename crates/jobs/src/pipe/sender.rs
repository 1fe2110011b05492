//! The sending side of a connection to a supervisor.
//!
//! Frames are written to the socket by the caller, without waiting. So a frame that was sent reaches
//! the supervisor even if this process is killed right after. What the socket does not take at once
//! is written by a task.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use serde_json::value::RawValue;
use tokio::{net::unix::OwnedWriteHalf, sync::Notify, task::AbortHandle};

use super::wire::{Frame, Greeting, Kind, VERSION};

/// Bytes that may wait for the socket before a sender of messages waits.
const MAX_WAITING: usize = 1 << 20;

/// Capacity that the buffer keeps.
const RETAINED: usize = 64 << 10;

/// Sends messages and instructions to a supervised process. Cheap to clone.
///
/// Sending does not fail: [`Pipe::next`](super::Pipe::next) reports the end of the connection.
#[derive(Clone, Debug)]
pub struct PipeSender(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    waiting: Arc<Waiting>,
    writing: AbortHandle,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

/// Bytes that wait for the socket.
#[derive(Debug)]
struct Waiting {
    socket: OwnedWriteHalf,
    // A std mutex: no code awaits while it is held, and writing does not block.
    bytes: Mutex<BytesMut>,
    /// Signaled when bytes wait.
    some: Notify,
    /// Signaled when there are fewer.
    fewer: Notify,
}

/// A request that survives its gateway.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "both members are needed")]
pub struct Retention {
    /// Time that the request survives without a gateway.
    pub time: Duration,
    /// Task of the request, if there is one.
    pub label: Option<String>,
}

impl PipeSender {
    pub(super) fn new(socket: OwnedWriteHalf) -> Self {
        let waiting = Arc::new(Waiting {
            socket,
            bytes: Mutex::default(),
            some: Notify::new(),
            fewer: Notify::new(),
        });
        let writing = tokio::spawn(write_waiting(Arc::clone(&waiting))).abort_handle();
        Self(Arc::new(Shared { waiting, writing }))
    }

    pub(super) fn hello(&self, pipe: &str, observes: bool) {
        let greeting = Greeting { version: VERSION, pipe: pipe.to_owned(), observes };
        self.send(&Frame::new(Kind::Hello, 0).json(&greeting));
    }

    /// Sets the text that later gateways get in [`PipeHello`](super::PipeHello).
    pub fn greet(&self, greeting: &RawValue) {
        self.send(&Frame::new(Kind::Greet, 0).body(greeting.get().to_owned()));
    }

    /// Writes a message that is not a request: a notification.
    pub async fn write(&self, message: Bytes) {
        self.room().await;
        self.send_line(&[Frame::new(Kind::Write, 0).body(message)], &[]);
    }

    /// Writes a request, unless the ID has one that is open.
    pub async fn request(&self, id: u64, message: Bytes, retention: Option<&Retention>) {
        self.room().await;
        let time = retention.map_or(0, |retention| millis(retention.time));
        let label = retention.and_then(|retention| retention.label.clone());
        let label = label.map(|label| Frame::new(Kind::Label, id).body(label));
        let request = Frame::new(Kind::Request, id).number(time).body(message);
        self.send_line(&[request], label.as_slice());
    }

    /// Writes the response to a request of the process. Only the first response counts, and only
    /// that of the gateway that owns the call of the request.
    pub async fn respond(&self, message: Bytes) {
        self.room().await;
        self.send_line(&[Frame::new(Kind::Respond, 0).body(message)], &[]);
    }

    /// Lets a request survive this gateway for a time.
    pub fn retain(&self, id: u64, time: Duration) {
        self.send(&Frame::new(Kind::Retain, id).number(millis(time)));
    }

    /// Records the task of a request.
    pub fn label(&self, id: u64, task: &str) {
        self.send(&Frame::new(Kind::Label, id).body(task.to_owned()));
    }

    /// Makes this gateway the owner of a request.
    /// [`PipeEvent::Attached`](super::PipeEvent::Attached) and the messages of the request follow.
    pub fn attach(&self, id: u64) {
        self.send(&Frame::new(Kind::Attach, id));
    }

    /// Records that a request carries an input request of the process, under a number.
    pub fn carry(&self, id: u64, input: &str, number: u32) {
        self.send(&Frame::new(Kind::Carry, id).number(number.into()).body(input.to_owned()));
    }

    /// Closes the slot of a request, and writes a message that cancels it. Has no effect if the
    /// response has arrived, or if another gateway owns the request.
    pub fn cancel(&self, id: u64, message: Bytes) {
        self.send_line(&[Frame::new(Kind::Cancel, id).body(message)], &[]);
    }

    /// Closes the slot of a request. The gateway needs no response to it.
    pub fn done(&self, id: u64) {
        self.send(&Frame::new(Kind::Done, id));
    }

    /// Ends the process, unless another gateway or a retained request needs it. With `at_any_rate`,
    /// ends it in any case. [`PipeEvent::Exit`](super::PipeEvent::Exit) or
    /// [`PipeEvent::Kept`](super::PipeEvent::Kept) follows.
    pub fn end(&self, at_any_rate: bool) {
        self.send(&Frame::new(Kind::End, 0).number(at_any_rate.into()));
    }

    /// Waits until the socket has taken most of the frames.
    async fn room(&self) {
        let waiting = &self.0.waiting;
        loop {
            let fewer = waiting.fewer.notified();
            tokio::pin!(fewer);
            fewer.as_mut().enable();
            if waiting.lock().len() <= MAX_WAITING {
                return;
            }
            fewer.await;
        }
    }

    fn send(&self, frame: &Frame) {
        self.0.waiting.send(|bytes| frame.write(bytes, false));
    }

    /// Sends frames whose bodies are lines, and then others.
    fn send_line(&self, lines: &[Frame], others: &[Frame]) {
        self.0.waiting.send(|bytes| {
            lines.iter().for_each(|frame| frame.write(bytes, true));
            others.iter().for_each(|frame| frame.write(bytes, false));
        });
    }
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, BytesMut> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, write: impl FnOnce(&mut BytesMut)) {
        let mut bytes = self.lock();
        let is_first = bytes.is_empty();
        write(&mut bytes);
        if is_first {
            self.write(&mut bytes);
        }
        if !bytes.is_empty() {
            self.some.notify_one();
        }
    }

    /// Writes as much as the socket takes.
    fn write(&self, bytes: &mut BytesMut) {
        while !bytes.is_empty() {
            match self.socket.try_write(bytes) {
                Ok(count) if count > 0 => bytes.advance(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // The supervisor is gone. The reader sees that.
                _ => bytes.clear(),
            }
        }
        if bytes.capacity() > RETAINED {
            *bytes = BytesMut::new();
        }
    }
}

async fn write_waiting(waiting: Arc<Waiting>) {
    loop {
        waiting.some.notified().await;
        while !waiting.lock().is_empty() {
            if waiting.socket.writable().await.is_err() {
                waiting.lock().clear();
            }
            waiting.write(&mut waiting.lock());
            waiting.fewer.notify_waiters();
        }
    }
}

/// Returns a time in milliseconds, at least one.
fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

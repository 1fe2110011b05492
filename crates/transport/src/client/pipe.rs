//! One channel for everything: answers find their requests by id.
//!
//! A reader task hands each message to the request it belongs to, or to whoever takes what belongs
//! to none. A writer task sends what has been queued, as much at once as there is.

mod lines;
mod mailbox;

use std::{
    collections::HashMap,
    future::Future,
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use outlive_protocol::{Incoming, IncomingKind};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, mpsc},
    task::JoinHandle,
};

use super::{TransportError, TransportErrorKind};
use crate::messages::{Sink, Source};
pub use mailbox::Mailbox;

/// How many messages may wait to be written before senders wait.
const QUEUED: usize = 256;

/// Bounds of a pipe.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "two numbers")]
pub struct PipeLimits {
    /// Bytes of one message.
    pub message_bytes: usize,
    /// Messages that wait for one request before notifications are dropped.
    pub queued: usize,
}

/// A client's end of a pipe. Closed when it is dropped.
#[derive(Debug)]
pub struct PipeLink {
    shared: Arc<Shared>,
    out: mpsc::Sender<Bytes>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Shared {
    // A std mutex: nothing awaits while it is held, and the map is touched for microseconds.
    waiting: Mutex<HashMap<u64, Arc<mailbox::Slot>>>,
    closed: AtomicBool,
    closing: Notify,
    limits: PipeLimits,
}

impl PipeLink {
    /// Speaks over a byte stream, one message per line. Messages that belong to no request go to
    /// `others`.
    pub fn lines<R, W>(
        input: R,
        output: W,
        limits: PipeLimits,
        others: mpsc::Sender<Incoming>,
    ) -> Self
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let source = lines::LineSource::new(input, limits.message_bytes);
        Self::open(source, lines::LineSink::new(output), limits, others)
    }

    /// Speaks over a transport of the caller's own.
    pub fn messages(
        source: impl Source + 'static,
        sink: impl Sink + 'static,
        limits: PipeLimits,
        others: mpsc::Sender<Incoming>,
    ) -> Self {
        Self::open(source, OneByOne(sink), limits, others)
    }

    fn open(
        source: impl Source + 'static,
        sink: impl Batches + 'static,
        limits: PipeLimits,
        others: mpsc::Sender<Incoming>,
    ) -> Self {
        let (out, queue) = mpsc::channel(QUEUED);
        let shared = Arc::new(Shared {
            waiting: Mutex::default(),
            closed: AtomicBool::new(false),
            closing: Notify::new(),
            limits,
        });
        let reader = tokio::spawn(read(source, Arc::clone(&shared), others));
        let writer = tokio::spawn(write(sink, queue, Arc::clone(&shared)));
        Self { shared, out, tasks: [reader, writer] }
    }

    /// Where the messages for a request will be.
    pub fn expect(&self, id: u64) -> Mailbox {
        let slot = Arc::new(mailbox::Slot::new(self.shared.limits.queued));
        let mut waiting = self.shared.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed() {
            slot.close();
        }
        waiting.insert(id, Arc::clone(&slot));
        Mailbox::new(id, slot, Arc::downgrade(&self.shared))
    }

    /// Queues a message.
    ///
    /// # Errors
    ///
    /// When the pipe is closed.
    pub async fn send(&self, message: Bytes) -> Result<(), TransportError> {
        let closed = || TransportError::unsent(TransportErrorKind::Closed);
        if self.is_closed() {
            return Err(closed());
        }
        self.out.send(message).await.map_err(|_| closed())
    }

    /// Queues a message if there is room: for those who cannot wait.
    pub fn send_now(&self, message: Bytes) -> bool {
        self.out.try_send(message).is_ok()
    }

    /// Whether nothing can be sent any more.
    pub fn is_closed(&self) -> bool {
        self.shared.closed.load(Ordering::Acquire)
    }

    /// Closes it: the server sees the end of its input.
    pub fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.shared.close();
    }

    /// Completes when the pipe has closed.
    pub async fn closed(&self) {
        let notified = self.shared.closing.notified();
        tokio::pin!(notified);
        notified.as_mut().enable();
        if !self.is_closed() {
            notified.await;
        }
    }
}

impl Drop for PipeLink {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.closing.notify_waiters();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.drain().for_each(|(_, slot)| slot.close());
    }

    fn forget(&self, id: u64) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    fn slot(&self, id: u64) -> Option<Arc<mailbox::Slot>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    /// Hands a message to the request it belongs to; gives it back if there is none.
    fn deliver(&self, message: Incoming) -> Option<Incoming> {
        let id = match message.kind() {
            IncomingKind::Result { .. } | IncomingKind::Error { .. } => message.answers(),
            IncomingKind::Notification { .. } => message.belongs_to(),
            IncomingKind::Request { .. } => None,
        };
        let slot = id.and_then(|id| self.slot(id));
        match (slot, message.kind()) {
            (Some(slot), _) => {
                slot.put(message);
                None
            }
            (None, IncomingKind::Result { .. } | IncomingKind::Error { .. }) => {
                tracing::warn!(?id, "a response that nobody waits for was dropped");
                None
            }
            (None, _) => Some(message),
        }
    }
}

async fn read(mut source: impl Source, shared: Arc<Shared>, others: mpsc::Sender<Incoming>) {
    loop {
        let message = match source.receive().await {
            Ok(Some(message)) => message,
            Ok(None) => break,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(%error, "a message was skipped");
                continue;
            }
            Err(error) => {
                tracing::debug!(%error, "the pipe broke");
                break;
            }
        };
        for message in split(message) {
            let incoming = match Incoming::read(message) {
                Ok(incoming) => incoming,
                Err(why) => {
                    tracing::warn!(why, "something that is no message was skipped");
                    continue;
                }
            };
            if let Some(other) = shared.deliver(incoming) {
                // Whoever takes these does not wait for answers, so the pipe is not stalled.
                let _ = others.send(other).await;
            }
        }
    }
    shared.close();
}

/// A batch is taken apart; 2025-03-26 lets servers send them.
fn split(message: Bytes) -> Vec<Bytes> {
    if message.trim_ascii_start().first() != Some(&b'[') {
        return vec![message];
    }
    let parts: Vec<&serde_json::value::RawValue> =
        serde_json::from_slice(&message).unwrap_or_default();
    parts.into_iter().map(|part| message.slice_ref(part.get().as_bytes())).collect()
}

async fn write(mut sink: impl Batches, mut queue: mpsc::Receiver<Bytes>, shared: Arc<Shared>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, QUEUED).await > 0 {
        if let Err(error) = sink.send_all(&mut batch).await {
            tracing::debug!(%error, "the pipe broke");
            break;
        }
    }
    shared.close();
}

/// Somewhere to write several messages at once.
trait Batches: Send {
    fn send_all(&mut self, batch: &mut Vec<Bytes>) -> impl Future<Output = io::Result<()>> + Send;
}

struct OneByOne<S>(S);

impl<S: Sink> Batches for OneByOne<S> {
    async fn send_all(&mut self, batch: &mut Vec<Bytes>) -> io::Result<()> {
        for message in batch.drain(..) {
            self.0.send(message).await?;
        }
        Ok(())
    }
}

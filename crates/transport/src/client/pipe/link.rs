//! A client's end of a pipe.
//!
//! A reader task hands each message to the request it belongs to, or to whoever takes what belongs
//! to none. A writer task sends what has been queued, as much at once as there is.

use std::{
    io,
    sync::{Arc, PoisonError, atomic::Ordering},
};

use bytes::Bytes;
use outlive_protocol::Incoming;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    task::JoinHandle,
};

use super::{
    lines::{LineSink, LineSource},
    mailbox::Mailbox,
    sink::{BatchSink, OneByOne},
    slot::Slot,
    state::{PipeLimits, PipeState},
};
use crate::{
    client::{TransportError, TransportErrorKind},
    messages::{Sink, Source},
};

/// How many messages may wait to be written before senders wait.
const QUEUED: usize = 256;

/// A client's end of a pipe. Closed when it is dropped.
#[derive(Debug)]
pub struct PipeLink {
    state: Arc<PipeState>,
    out: mpsc::Sender<Bytes>,
    tasks: [JoinHandle<()>; 2],
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
        let source = LineSource::new(input, limits.message_bytes);
        Self::open(source, LineSink::new(output), limits, others)
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
        sink: impl BatchSink + 'static,
        limits: PipeLimits,
        others: mpsc::Sender<Incoming>,
    ) -> Self {
        let (out, queue) = mpsc::channel(QUEUED);
        let state = Arc::new(PipeState::new(limits));
        let reader = tokio::spawn(read(source, Arc::clone(&state), others));
        let writer = tokio::spawn(write(sink, queue, Arc::clone(&state)));
        Self { state, out, tasks: [reader, writer] }
    }

    /// Where the messages for a request will be.
    pub fn expect(&self, id: u64) -> Mailbox {
        let slot = Arc::new(Slot::new(self.state.limits.queued));
        let mut waiting = self.state.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_closed() {
            slot.close();
        }
        waiting.insert(id, Arc::clone(&slot));
        Mailbox::new(id, slot, Arc::downgrade(&self.state))
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
        self.state.closed.load(Ordering::Acquire)
    }

    /// Closes it: the server sees the end of its input.
    pub fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.state.close();
    }

    /// Completes when the pipe has closed.
    pub async fn closed(&self) {
        let notified = self.state.closing.notified();
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

async fn read(mut source: impl Source, state: Arc<PipeState>, others: mpsc::Sender<Incoming>) {
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
                    tracing::warn!(error = why, "something that is no message was skipped");
                    continue;
                }
            };
            if let Some(other) = state.deliver(incoming) {
                // Whoever takes these does not wait for answers, so the pipe is not stalled.
                let _ = others.send(other).await;
            }
        }
    }
    state.close();
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

async fn write(mut sink: impl BatchSink, mut queue: mpsc::Receiver<Bytes>, state: Arc<PipeState>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, QUEUED).await > 0 {
        if let Err(error) = sink.send_all(&mut batch).await {
            tracing::debug!(%error, "the pipe broke");
            break;
        }
    }
    state.close();
}

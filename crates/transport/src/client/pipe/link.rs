//! Client end of a pipe.
//!
//! A reader task delivers each message to the request that it belongs to. Messages that belong to
//! no request go to a separate channel. A writer task sends all queued messages in one batch.

use std::{
    io,
    sync::{Arc, PoisonError, atomic::Ordering},
    time::{Duration, Instant},
};

use bytes::Bytes;
use outlive_protocol::Incoming;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

use super::{
    lines::{LineSink, LineSource},
    long_line::LongLine,
    mailbox::Mailbox,
    sink::{BatchSink, OneByOne},
    slot::Slot,
    state::{PipeLimits, PipeState},
};
use crate::{
    client::{TransportError, TransportErrorKind},
    messages::{Sink, Source},
    warnings::Warnings,
};

/// Capacity of the write queue. Senders wait when the queue is full.
const QUEUED: usize = 256;

/// Maximum wait for other messages to be handled.
const MAX_FLUSH: Duration = Duration::from_secs(1);

/// Client end of a pipe. Dropping it closes the pipe.
#[derive(Debug)]
pub struct PipeLink {
    state: Arc<PipeState>,
    out: mpsc::Sender<Bytes>,
    tasks: [JoinHandle<()>; 2],
}

impl PipeLink {
    /// Opens a link over a byte stream with one message per line. Messages that belong to no
    /// request go to `others`.
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

    /// Opens a link over a custom transport.
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

    /// Returns the mailbox for the messages of the request `id`.
    pub fn expect(&self, id: u64) -> Mailbox {
        let slot = Arc::new(Slot::new(self.state.limits.queued));
        let mut waiting = self.state.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = self.state.closed() {
            slot.close(reason.clone());
        }
        waiting.insert(id, Arc::clone(&slot));
        Mailbox::new(id, slot, Arc::downgrade(&self.state))
    }

    /// Queues a message.
    ///
    /// # Errors
    ///
    /// Returns an error if the pipe is closed.
    pub async fn send(&self, message: Bytes) -> Result<(), TransportError> {
        let closed = || TransportError::unsent(TransportErrorKind::Closed);
        if self.is_closed() {
            return Err(closed());
        }
        self.out.send(message).await.map_err(|_| closed())
    }

    /// Queues a message without waiting. Returns whether the message was queued.
    pub fn send_now(&self, message: Bytes) -> bool {
        self.out.try_send(message).is_ok()
    }

    /// Returns the number of responses that no request read, although it still existed when they
    /// arrived.
    pub fn unread_responses(&self) -> u64 {
        self.state.unread_responses.load(Ordering::Relaxed)
    }

    /// Counts a message of the channel for other messages as handled.
    pub fn count_handled(&self) {
        self.state.handled.send_modify(|handled| *handled += 1);
    }

    /// Completes when all other messages that arrived before a response are handled, or after a
    /// second. To be called after that response was taken.
    pub async fn others_handled(&self) {
        let arrived = self.state.others.load(Ordering::Relaxed);
        let mut handled = self.state.handled.subscribe();
        // Messages of a client that was closed are never handled.
        let _ = timeout(MAX_FLUSH, handled.wait_for(|handled| *handled >= arrived)).await;
    }

    /// Returns whether the pipe is closed.
    pub fn is_closed(&self) -> bool {
        self.state.closed().is_some()
    }

    /// Returns why this side closed the pipe: its peer broke the protocol.
    pub fn error(&self) -> Option<TransportErrorKind> {
        let reason = self.state.closed()?;
        (*reason != TransportErrorKind::Closed).then(|| reason.clone())
    }

    /// Closes the pipe. The server sees the end of its input.
    pub fn close(&self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.state.close(TransportErrorKind::Closed);
    }

    /// Completes when the pipe has closed. The future does not keep the pipe open.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + use<> {
        let state = Arc::clone(&self.state);
        async move {
            let notified = state.closing.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if state.closed().is_none() {
                notified.await;
            }
        }
    }
}

impl Drop for PipeLink {
    fn drop(&mut self) {
        self.close();
    }
}

async fn read(source: impl Source, state: Arc<PipeState>, others: mpsc::Sender<Incoming>) {
    let reason = deliver_all(source, &state, &others).await;
    state.close(reason);
}

/// Delivers all messages. Returns why no more are read.
async fn deliver_all(
    mut source: impl Source,
    state: &PipeState,
    others: &mpsc::Sender<Incoming>,
) -> TransportErrorKind {
    let warnings = Warnings::default();
    let mut invalid = 0;
    loop {
        let message = match source.receive().await {
            Ok(Some(message)) => message,
            Ok(None) => return TransportErrorKind::Closed,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                match error.get_ref().and_then(|error| error.downcast_ref::<LongLine>()) {
                    Some(line) => state.too_long(line),
                    None => tracing::warn!(%error, "skipping a message"),
                }
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                return TransportErrorKind::TooLarge(state.limits.message_bytes);
            }
            Err(error) => {
                tracing::debug!(%error, "reading from the pipe failed");
                return TransportErrorKind::Closed;
            }
        };
        for message in split(message) {
            let incoming = match Incoming::read(message) {
                Ok(incoming) => incoming,
                Err(error) => {
                    invalid += 1;
                    if let Some(count) = warnings.count(Instant::now()) {
                        tracing::warn!(
                            count,
                            error,
                            "skipping input that is not a JSON-RPC message"
                        );
                    }
                    if invalid >= state.limits.invalid {
                        return TransportErrorKind::Malformed(format!(
                            "{invalid} lines in a row are not JSON-RPC messages"
                        ));
                    }
                    continue;
                }
            };
            invalid = 0;
            if let Some(other) = state.deliver(incoming) {
                // The receiver does not wait for responses, so this cannot stall the pipe.
                if others.send(other).await.is_ok() {
                    state.others.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Splits a batch into its messages. In 2025-03-26, servers may send batches.
fn split(message: Bytes) -> Vec<Bytes> {
    if message.trim_ascii_start().first() != Some(&b'[') {
        return vec![message];
    }
    let parts: Vec<&serde_json::value::RawValue> =
        serde_json::from_slice(&message).unwrap_or_default();
    let slice = |part: &serde_json::value::RawValue| message.slice_ref(part.get().as_bytes());
    let parts: Vec<Bytes> = parts.into_iter().map(slice).collect();
    // An empty or invalid batch is an invalid message.
    if parts.is_empty() { vec![message] } else { parts }
}

async fn write(mut sink: impl BatchSink, mut queue: mpsc::Receiver<Bytes>, state: Arc<PipeState>) {
    let mut batch = Vec::new();
    while queue.recv_many(&mut batch, QUEUED).await > 0 {
        if let Err(error) = sink.send_all(&mut batch).await {
            tracing::debug!(%error, "writing to the pipe failed");
            break;
        }
    }
    state.close(TransportErrorKind::Closed);
}

//! Custom transports: implement [`Source`] and [`Sink`] to exchange whole messages.

use std::{future::Future, io, sync::Arc};

use bytes::Bytes;
use outlive_protocol::{Endpoint, Principal, Receipt};

use crate::pipe::{Pipe, Unread};

/// Source of received messages.
pub trait Source: Send {
    /// Returns the next message, or `None` if the client disconnected. Must be cancel-safe.
    fn receive(&mut self) -> impl Future<Output = io::Result<Option<Bytes>>> + Send;
}

/// Sink for sent messages.
pub trait Sink: Send {
    /// Sends one message: JSON without a line break.
    fn send(&mut self, message: Bytes) -> impl Future<Output = io::Result<()>> + Send;
}

/// Serves one client until its source ends. Running calls finish before this function returns.
///
/// # Errors
///
/// Returns an error if the source or the sink fails.
pub async fn serve(
    endpoint: Endpoint,
    principal: Principal,
    mut source: impl Source,
    mut sink: impl Sink,
) -> io::Result<()> {
    let (pipe, mut late) = Pipe::open(endpoint, principal);
    let limit = pipe.message_limit();
    let result = async {
        loop {
            let mut out = Vec::new();
            tokio::select! {
                // Backpressure: if the client does not read, the server stops reading from it.
                message = source.receive(), if pipe.unread().has_room() => match message? {
                    Some(message) if message.len() > limit => pipe.refuse_too_long(&mut out),
                    Some(message) => pipe.accept(&message, &mut out),
                    None => break,
                },
                Some(message) = late.recv() => {
                    send_late(&mut sink, message).await?;
                    continue;
                }
            }
            send_lines(&mut sink, out).await?;
        }
        let drained = pipe.drained();
        tokio::pin!(drained);
        loop {
            tokio::select! {
                biased;
                Some(message) = late.recv() => send_late(&mut sink, message).await?,
                () = &mut drained => break,
            }
        }
        while let Ok(message) = late.try_recv() {
            send_late(&mut sink, message).await?;
        }
        Ok(())
    }
    .await;
    Arc::clone(&pipe).close();
    result
}

/// Sends a message of a call that waited, and reports its delivery.
async fn send_late(sink: &mut impl Sink, mut message: Unread) -> io::Result<()> {
    send_lines(sink, message.to_vec()).await?;
    message.take_receipt().into_iter().for_each(Receipt::delivered);
    Ok(())
}

async fn send_lines(sink: &mut impl Sink, lines: Vec<u8>) -> io::Result<()> {
    let mut rest = Bytes::from(lines);
    while let Some(at) = memchr::memchr(b'\n', &rest) {
        let line = rest.split_to(at + 1);
        sink.send(line.slice(..at)).await?;
    }
    Ok(())
}

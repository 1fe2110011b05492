//! Client for the HTTP+SSE transport of 2024-11-05. The server sends all messages on one event
//! stream.
//!
//! Deprecated: the client tries this transport last. Spec:
//! <https://modelcontextprotocol.io/specification/2024-11-05/basic/transports#http-with-sse>

use std::io;

use bytes::Bytes;
use http::HeaderMap;

use super::{link::HttpLink, reply::HttpReply};
use crate::{
    client::error::{TransportError, TransportErrorKind},
    messages::{Sink, Source},
};

/// Both directions of an HTTP+SSE connection.
#[derive(Debug)]
pub struct HttpSse {
    stream: HttpReply,
    sink: PostSink,
}

#[derive(Debug)]
struct PostSink {
    link: HttpLink,
    headers: HeaderMap,
}

impl HttpSse {
    /// Opens the stream and waits for its first event, which contains the URL for messages.
    ///
    /// # Errors
    ///
    /// Returns an error if the server does not support this transport.
    pub async fn open(link: &HttpLink, headers: HeaderMap) -> Result<Self, TransportError> {
        let mut stream = link.get(headers.clone()).await?;
        if !stream.status.is_success() {
            return Err(TransportError::unsent(TransportErrorKind::Status(stream.status.as_u16())));
        }
        let missing = || {
            TransportError::unsent(TransportErrorKind::Malformed(
                "the stream does not start with an `endpoint` event".to_owned(),
            ))
        };
        if !stream.is_events() {
            return Err(missing());
        }
        let first = stream.event().await?.filter(|event| event.name == "endpoint");
        let endpoint = link.address().resolve(&first.ok_or_else(missing)?.data)?;
        Ok(Self { stream, sink: PostSink { link: link.with_address(endpoint), headers } })
    }

    /// Splits the connection into its two directions.
    pub fn split(self) -> (impl Source + 'static, impl Sink + 'static) {
        (EventSource(self.stream), self.sink)
    }
}

struct EventSource(HttpReply);

impl Source for EventSource {
    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            match self.0.event().await? {
                None => return Ok(None),
                Some(event) if event.data.is_empty() => {}
                Some(event) => return Ok(Some(Bytes::from(event.data))),
            }
        }
    }
}

impl Sink for PostSink {
    async fn send(&mut self, message: Bytes) -> io::Result<()> {
        let mut reply = self.link.post(self.headers.clone(), message).await?;
        let status = reply.status;
        // The response arrives on the stream. The body of this reply is for people.
        let _ = reply.bytes().await?;
        match status.is_success() {
            true => Ok(()),
            false => {
                Err(TransportError::after_sending(TransportErrorKind::Status(status.as_u16()))
                    .into())
            }
        }
    }
}

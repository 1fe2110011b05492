//! The response to an HTTP request: a body, or an event stream.

use std::{collections::VecDeque, fmt, future::poll_fn, pin::Pin, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Response, StatusCode, header};
use http_body::Body;
use hyper::body::Incoming;

use crate::{
    client::error::{TransportError, TransportErrorKind},
    sse_reader::{SseEvent, SseReader},
};

/// The response to an HTTP request.
///
/// Dropping it before its end closes the connection. Some protocol versions treat a closed
/// connection as a cancellation.
pub struct HttpReply {
    /// HTTP status.
    pub status: StatusCode,
    /// Response headers.
    pub headers: HeaderMap,
    body: Incoming,
    reader: SseReader,
    events: VecDeque<SseEvent>,
    limit: usize,
}

impl fmt::Debug for HttpReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpReply").field("status", &self.status).finish_non_exhaustive()
    }
}

impl HttpReply {
    pub(super) fn new(response: Response<Incoming>, limit: usize) -> Self {
        let (head, body) = response.into_parts();
        Self {
            status: head.status,
            headers: head.headers,
            body,
            reader: SseReader::new(limit),
            events: VecDeque::new(),
            limit,
        }
    }

    /// Returns whether the body is an event stream.
    pub fn is_events(&self) -> bool {
        self.is_type("text/event-stream")
    }

    /// Returns whether the body is JSON.
    pub fn is_json(&self) -> bool {
        self.is_type("application/json")
    }

    fn is_type(&self, wanted: &str) -> bool {
        let value = self.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
        essence.trim().eq_ignore_ascii_case(wanted)
    }

    /// Returns the delay of `Retry-After`, if the header is in seconds.
    pub fn retry_after(&self) -> Option<Duration> {
        let value = self.headers.get(header::RETRY_AFTER)?.to_str().ok()?;
        value.trim().parse().ok().map(Duration::from_secs)
    }

    /// Reads the whole body.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost, or if the body exceeds the limit.
    pub async fn bytes(&mut self) -> Result<Bytes, TransportError> {
        let mut whole: Option<Bytes> = None;
        let mut joined = BytesMut::new();
        while let Some(data) = self.data().await? {
            if joined.len() + whole.as_ref().map_or(0, Bytes::len) + data.len() > self.limit {
                return Err(self.too_large());
            }
            // Most bodies arrive in one chunk and need no copy.
            match (whole.take(), joined.is_empty()) {
                (None, true) => whole = Some(data),
                (first, _) => {
                    joined.extend_from_slice(&first.unwrap_or_default());
                    joined.extend_from_slice(&data);
                }
            }
        }
        Ok(whole.unwrap_or_else(|| joined.freeze()))
    }

    /// Returns the next event, or `None` at the end of the stream.
    ///
    /// # Errors
    ///
    /// Returns an error if the connection is lost, or if an event exceeds the limit.
    pub async fn event(&mut self) -> Result<Option<SseEvent>, TransportError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let Some(data) = self.data().await? else { return Ok(None) };
            let events = &mut self.events;
            if self.reader.push(&data, |event| events.push_back(event)).is_err() {
                return Err(self.too_large());
            }
        }
    }

    async fn data(&mut self) -> Result<Option<Bytes>, TransportError> {
        loop {
            let frame = poll_fn(|cx| Pin::new(&mut self.body).poll_frame(cx)).await;
            match frame {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
                Some(Err(error)) => {
                    return Err(TransportError::after_sending(TransportErrorKind::ConnectionLost)
                        .because(error));
                }
            }
        }
    }

    fn too_large(&self) -> TransportError {
        TransportError::after_sending(TransportErrorKind::TooLarge(self.limit))
    }
}

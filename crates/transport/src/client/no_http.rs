//! Stub of the HTTP client without the feature `http`. No link can be opened, so these types have
//! no values.

use std::{convert::Infallible, io, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};

use super::{TransportError, TransportErrorKind};
use crate::{
    messages::{Sink, Source},
    sse_reader::SseEvent,
};

pub use super::http_options::HttpOptions;

/// An `http:` or `https:` URL.
#[derive(Clone, Debug)]
pub struct Address(Infallible);

/// A link to one server over HTTP.
#[derive(Clone, Debug)]
pub struct HttpLink(Infallible);

/// The response to a request.
#[derive(Debug)]
pub struct HttpReply {
    /// HTTP status.
    pub status: StatusCode,
    /// Response headers.
    pub headers: HeaderMap,
    never: Infallible,
}

/// Both directions of an HTTP+SSE connection.
#[derive(Debug)]
pub struct HttpSse(Infallible);

impl Address {
    /// Returns the origin of the URL.
    pub fn origin(&self) -> String {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "their twins with the feature `http` await")]
impl HttpLink {
    /// Rejects every URL.
    ///
    /// # Errors
    ///
    /// Always returns an error.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of the feature `http`")]
    pub fn new(_: &str, _: HttpOptions) -> Result<Self, TransportError> {
        Err(TransportError::unsent(TransportErrorKind::Address(
            "a URL requires the feature `http` of the crate `outlive`; enable it".to_owned(),
        )))
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &Address {
        match self.0 {}
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// Never: a link cannot exist.
    pub async fn post(&self, _: HeaderMap, _: Bytes) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }

    /// Sends a message and calls the function again for each further attempt.
    ///
    /// # Errors
    ///
    /// Never: a link cannot exist.
    pub async fn post_anew(
        &self,
        _: HeaderMap,
        _: impl FnMut() -> Bytes + Send,
    ) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }

    /// Opens an event stream.
    ///
    /// # Errors
    ///
    /// Never: a link cannot exist.
    pub async fn get(&self, _: HeaderMap) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }

    /// Ends the session that the headers identify.
    ///
    /// # Errors
    ///
    /// Never: a link cannot exist.
    pub async fn delete(&self, _: HeaderMap) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "their twins with the feature `http` await")]
impl HttpReply {
    /// Returns whether the body is an event stream.
    pub fn is_events(&self) -> bool {
        match self.never {}
    }

    /// Returns whether the body is JSON.
    pub fn is_json(&self) -> bool {
        match self.never {}
    }

    /// Returns the delay of `Retry-After`.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.never {}
    }

    /// Reads the whole body.
    ///
    /// # Errors
    ///
    /// Never: a response cannot exist.
    pub async fn bytes(&mut self) -> Result<Bytes, TransportError> {
        match self.never {}
    }

    /// Returns the next event.
    ///
    /// # Errors
    ///
    /// Never: a response cannot exist.
    pub async fn event(&mut self) -> Result<Option<SseEvent>, TransportError> {
        match self.never {}
    }
}

impl HttpSse {
    /// Opens the stream.
    ///
    /// # Errors
    ///
    /// Never: a link cannot exist.
    #[expect(clippy::unused_async, reason = "its twin with the feature `http` awaits")]
    pub async fn open(link: &HttpLink, _: HeaderMap) -> Result<Self, TransportError> {
        match link.0 {}
    }

    /// Splits the connection into its two directions.
    pub fn split(self) -> (impl Source + 'static, impl Sink + 'static) {
        (End(self.0), End(self.0))
    }
}

struct End(Infallible);

impl Source for End {
    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        match self.0 {}
    }
}

impl Sink for End {
    async fn send(&mut self, _: Bytes) -> io::Result<()> {
        match self.0 {}
    }
}

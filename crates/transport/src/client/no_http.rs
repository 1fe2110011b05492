//! The HTTP client without the feature `http`: no link can be opened, so nothing here has a value.

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
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    never: Infallible,
}

/// Both directions of HTTP+SSE.
#[derive(Debug)]
pub struct HttpSse(Infallible);

impl Address {
    /// The origin of the URL.
    pub fn origin(&self) -> String {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "these functions are async with the feature `http`")]
impl HttpLink {
    /// Refuses every URL.
    ///
    /// # Errors
    ///
    /// Always.
    #[expect(clippy::needless_pass_by_value, reason = "the signature of the feature `http`")]
    pub fn new(_: &str, _: HttpOptions) -> Result<Self, TransportError> {
        Err(TransportError::unsent(TransportErrorKind::Address(
            "a URL needs the feature `http` of the crate `outlive`; switch it on".to_owned(),
        )))
    }

    /// The address of the server.
    pub fn address(&self) -> &Address {
        match self.0 {}
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// None: there is no link.
    pub async fn post(&self, _: HeaderMap, _: Bytes) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }

    /// Sends a message that is written again for each attempt.
    ///
    /// # Errors
    ///
    /// None: there is no link.
    pub async fn post_anew(
        &self,
        _: HeaderMap,
        _: impl FnMut() -> Bytes + Send,
    ) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }

    /// Opens a stream of events.
    ///
    /// # Errors
    ///
    /// None: there is no link.
    pub async fn get(&self, _: HeaderMap) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }

    /// Ends what the headers name.
    ///
    /// # Errors
    ///
    /// None: there is no link.
    pub async fn delete(&self, _: HeaderMap) -> Result<HttpReply, TransportError> {
        match self.0 {}
    }
}

#[expect(clippy::unused_async, reason = "these functions are async with the feature `http`")]
impl HttpReply {
    /// Whether the body is a stream of events.
    pub fn is_events(&self) -> bool {
        match self.never {}
    }

    /// Whether the body is JSON.
    pub fn is_json(&self) -> bool {
        match self.never {}
    }

    /// When the server wants to be asked again.
    pub fn retry_after(&self) -> Option<Duration> {
        match self.never {}
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// None: there is no response.
    pub async fn bytes(&mut self) -> Result<Bytes, TransportError> {
        match self.never {}
    }

    /// The next event.
    ///
    /// # Errors
    ///
    /// None: there is no response.
    pub async fn event(&mut self) -> Result<Option<SseEvent>, TransportError> {
        match self.never {}
    }
}

impl HttpSse {
    /// Opens the stream.
    ///
    /// # Errors
    ///
    /// None: there is no link.
    #[expect(clippy::unused_async, reason = "the function is async with the feature `http`")]
    pub async fn open(link: &HttpLink, _: HeaderMap) -> Result<Self, TransportError> {
        match link.0 {}
    }

    /// The two directions.
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

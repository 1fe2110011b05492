//! Routes of an application on the same listener, such as an authorization server. They run before
//! authentication and set their own CORS headers.

use std::{
    fmt,
    future::Future,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::{Request, Response};
use outlive_protocol::Principal;

use super::{
    auth::Authenticator,
    body::{Body, ENOUGH, Source, StreamSettings},
    request_body::{Reading, read},
};
use crate::caller::Caller;

/// Routes of an application. The server has checked only the `Host` of the request.
pub trait Routes: Send + Sync + 'static {
    /// Returns the maximum body size of a request to `path`, or `None` if the path is not served.
    fn matches(&self, path: &str) -> Option<usize>;

    /// Responds to a request to one of the paths.
    ///
    /// If the client address is known, it is an [`IpAddr`] in the extensions of the request, with
    /// trusted proxies taken into account. If the server has an authenticator, it is an
    /// `Arc<dyn Authenticator>` in the extensions.
    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_>;
}

/// Future of a response.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Response<RouteBody>> + Send + 'a>>;

/// Body of a response of [`Routes`]: bytes, or an event stream.
pub struct RouteBody(Kind);

enum Kind {
    Full(Bytes),
    Events(Box<dyn EventSource>),
}

impl RouteBody {
    /// Creates an event stream. The server adds keep-alive comments, and takes the connection of an
    /// idle stream from hyper.
    pub fn events(source: impl EventSource) -> Self {
        Self(Kind::Events(Box::new(source)))
    }

    /// Returns the bytes, or `None` for an event stream.
    pub fn as_bytes(&self) -> Option<&Bytes> {
        match &self.0 {
            Kind::Full(bytes) => Some(bytes),
            Kind::Events(_) => None,
        }
    }

    /// Returns the source of an event stream.
    pub fn into_events(self) -> Option<Box<dyn EventSource>> {
        match self.0 {
            Kind::Full(_) => None,
            Kind::Events(source) => Some(source),
        }
    }
}

impl From<Bytes> for RouteBody {
    fn from(bytes: Bytes) -> Self {
        Self(Kind::Full(bytes))
    }
}

impl fmt::Debug for RouteBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Full(bytes) => write!(f, "RouteBody({} bytes)", bytes.len()),
            Kind::Events(_) => f.write_str("RouteBody(events)"),
        }
    }
}

/// Source of an event stream. Dropping it signals that the client disconnected.
pub trait EventSource: Send + 'static {
    /// Returns the next events in the format of server-sent events, or `None` at the end of the
    /// stream.
    fn poll_events(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

struct RouteEvents(Box<dyn EventSource>);

impl Source for RouteEvents {
    fn poll_fill(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        while out.len() < ENOUGH {
            match ready!(self.0.poll_events(cx)) {
                Some(events) => out.extend_from_slice(&events),
                None => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }
}

impl<R: Routes + ?Sized> Routes for Arc<R> {
    fn matches(&self, path: &str) -> Option<usize> {
        (**self).matches(path)
    }

    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        (**self).respond(request)
    }
}

/// Returns the routes that serve `path`, and the maximum body size.
pub(super) fn find<'r>(all: &'r [Arc<dyn Routes>], path: &str) -> Option<(&'r dyn Routes, usize)> {
    all.iter().find_map(|routes| routes.matches(path).map(|bytes| (&**routes, bytes)))
}

/// Data of the server that a request to routes needs.
pub(super) struct RouteContext<'a> {
    pub(super) reading: Reading<'a>,
    pub(super) streams: StreamSettings<'a>,
    pub(super) authenticator: Option<&'a Arc<dyn Authenticator>>,
    pub(super) peer: Option<IpAddr>,
}

/// Reads a request and passes it to its routes.
pub(super) async fn respond<B>(
    routes: &dyn Routes,
    context: RouteContext<'_>,
    mut parts: http::request::Parts,
    body: B,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: fmt::Display,
{
    let RouteContext { reading, streams, authenticator, peer } = context;
    if let Some(peer) = peer {
        parts.extensions.insert(peer);
    }
    if let Some(authenticator) = authenticator {
        parts.extensions.insert(Arc::clone(authenticator));
    }
    let body = match read(body, reading).await {
        Ok(body) => body,
        Err(response) => return *response,
    };
    let response = routes.respond(Request::from_parts(parts, body)).await;
    response.map(|body| match body.0 {
        Kind::Full(bytes) => Body::full(bytes),
        Kind::Events(source) => {
            let caller = Caller::new(&Principal::ANONYMOUS, peer);
            Body::held(streams, caller, RouteEvents(source), Vec::new())
        }
    })
}

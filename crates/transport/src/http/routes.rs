//! Routes of an application on the same listener, such as an authorization server. They run before
//! authentication and set their own CORS headers.

use std::{future::Future, net::IpAddr, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};

use super::{
    body::Body,
    request_body::{Reading, read},
};

/// Routes of an application. The server has checked only the `Host` of the request.
pub trait Routes: Send + Sync + 'static {
    /// Returns the maximum body size of a request to `path`, or `None` if the path is not served.
    fn matches(&self, path: &str) -> Option<usize>;

    /// Responds to a request to one of the paths.
    ///
    /// If the client address is known, it is an [`IpAddr`] in the extensions of the request, with
    /// trusted proxies taken into account.
    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_>;
}

/// Future of a response.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Response<Bytes>> + Send + 'a>>;

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

/// Reads a request and passes it to its routes.
pub(super) async fn respond<B>(
    routes: &dyn Routes,
    reading: Reading<'_>,
    mut parts: http::request::Parts,
    peer: Option<IpAddr>,
    body: B,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if let Some(peer) = peer {
        parts.extensions.insert(peer);
    }
    match read(body, reading).await {
        Ok(body) => routes.respond(Request::from_parts(parts, body)).await.map(Body::full),
        Err(response) => *response,
    }
}

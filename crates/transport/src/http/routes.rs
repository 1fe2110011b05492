//! What an application serves beside the endpoint, on the same listener: an authorization server, for
//! one. It is asked before anybody is authenticated, and says itself which web pages may use it.

use std::{future::Future, net::IpAddr, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};

use super::{
    body::Body,
    request_body::{Reading, read},
};

/// Serves paths of its own. Nothing about the caller has been judged but the `Host` of the request.
pub trait Routes: Send + Sync + 'static {
    /// How many bytes a request to this path may bring along; `None` if the path is none of these.
    fn matches(&self, path: &str) -> Option<usize>;

    /// Answers a request to one of the paths. The address that the request comes from, if it is known, is
    /// an [`IpAddr`] in the request's extensions; trusted proxies have been taken into account.
    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_>;
}

/// A response that is being made.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Response<Bytes>> + Send + 'a>>;

impl<R: Routes + ?Sized> Routes for Arc<R> {
    fn matches(&self, path: &str) -> Option<usize> {
        (**self).matches(path)
    }

    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        (**self).respond(request)
    }
}

/// Returns the routes that serve `path`, and how many bytes may be sent to it.
pub(super) fn find<'r>(all: &'r [Arc<dyn Routes>], path: &str) -> Option<(&'r dyn Routes, usize)> {
    all.iter().find_map(|routes| routes.matches(path).map(|bytes| (&**routes, bytes)))
}

/// Reads a request and lets its routes respond.
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

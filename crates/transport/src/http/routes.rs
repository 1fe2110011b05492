//! What an application serves beside the endpoint, on the same listener: an authorization server, for
//! one. It is asked before anybody is authenticated, and says itself which web pages may use it.

use std::{future::Future, net::IpAddr, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};

use super::{
    Body,
    post::{self, Reading},
    service::Shared,
};

/// Serves paths of its own. Nothing about the caller has been judged but the `Host` of the request.
pub trait Routes: Send + Sync + 'static {
    /// How many bytes a request to this path may bring along; `None` if the path is none of these.
    fn matches(&self, path: &str) -> Option<usize>;

    /// Answers a request to one of the paths. The address that the request comes from, if it is known, is
    /// an [`IpAddr`] in the request's extensions; trusted proxies have been taken into account.
    fn respond(&self, request: Request<Bytes>) -> Answering<'_>;
}

/// An answer that is being made.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Response<Bytes>> + Send + 'a>>;

impl<R: Routes + ?Sized> Routes for Arc<R> {
    fn matches(&self, path: &str) -> Option<usize> {
        (**self).matches(path)
    }

    fn respond(&self, request: Request<Bytes>) -> Answering<'_> {
        (**self).respond(request)
    }
}

/// Whose path this is, and how much may be sent to it.
pub(super) fn find<'s>(shared: &'s Shared, path: &str) -> Option<(&'s dyn Routes, usize)> {
    let mut all = shared.config.routes.iter();
    all.find_map(|routes| routes.matches(path).map(|bytes| (&**routes, bytes)))
}

/// Has a request answered.
pub(super) async fn answer<B>(
    shared: &Shared,
    (routes, bytes): (&dyn Routes, usize),
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
    match post::read(body, Reading::of_body(shared, bytes)).await {
        Ok(body) => routes.respond(Request::from_parts(parts, body)).await.map(Body::full),
        Err(response) => *response,
    }
}

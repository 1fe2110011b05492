//! Public documents of an authenticator, for an application that mounts the endpoint itself.

use std::{
    convert::Infallible,
    fmt,
    future::{Ready, ready},
    sync::Arc,
    task::{Context, Poll},
};

use http::{Request, Response, StatusCode};

use super::{auth::Authenticator, body::Body, reply};

/// A tower service that serves the documents of an [`Authenticator`]: the protected resource
/// metadata (RFC 9728), which clients read before they have a token.
///
/// [`HttpService`](super::HttpService) serves the documents itself if it sees the whole path. An
/// application that nests it under a path mounts this service at the paths of the documents,
/// without stripping a prefix (axum's `route_service`). Every other path returns 404.
#[derive(Clone)]
pub struct DocumentService(Arc<dyn Authenticator>);

impl DocumentService {
    /// Serves the documents of `authenticator`.
    pub fn new(authenticator: impl Authenticator) -> Self {
        Self(Arc::new(authenticator))
    }
}

impl<B> tower_service::Service<Request<B>> for DocumentService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ready(Ok(match self.0.document(request.uri().path()) {
            Some(document) => reply::document(request.method(), document),
            None => reply::problem(StatusCode::NOT_FOUND, "no document at this path"),
        }))
    }
}

impl fmt::Debug for DocumentService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DocumentService")
    }
}

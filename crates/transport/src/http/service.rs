//! The tower service: checks, authenticates and routes each request.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, request::Parts};
use outlive_protocol::{Endpoint, Principal};

use super::{
    allowlist::{self, Allowlist},
    auth::{AuthDecision, AuthRejection, DPOP},
    body::Body,
    config::HttpConfig,
    cors, delete, external_event, get,
    head::Head,
    http_sse, pages, peer, post, reply,
    request_body::unread,
    routes,
    state::HttpState,
};

/// An MCP server as a tower service.
///
/// The service responds on every path that it is mounted at. [`HttpService::sse`] and
/// [`HttpService::messages`] are the two paths of HTTP+SSE, for clients of 2024-11-05.
#[derive(Clone)]
pub struct HttpService {
    state: Arc<HttpState>,
    route: Route,
}

/// Path that a service handles.
#[derive(Clone, Debug)]
enum Route {
    Endpoint,
    Sse {
        messages: Arc<str>,
    },
    Messages,
    /// All paths, selected by the path of the request.
    ByPath,
}

impl HttpService {
    /// Serves an endpoint over HTTP.
    pub fn new(endpoint: Endpoint, config: HttpConfig) -> Self {
        Self {
            state: Arc::new(HttpState::new(endpoint, config, Allowlist::Loopback)),
            route: Route::Endpoint,
        }
    }

    /// Creates a service that routes by path, for the listener.
    pub(super) fn by_path(
        endpoint: Endpoint,
        config: HttpConfig,
        default_hosts: Allowlist,
    ) -> Self {
        Self {
            state: Arc::new(HttpState::new(endpoint, config, default_hosts)),
            route: Route::ByPath,
        }
    }

    /// Returns the event stream of HTTP+SSE. `messages` is the path at which
    /// [`HttpService::messages`] is mounted.
    #[must_use]
    pub fn sse(&self, messages: &str) -> Self {
        Self { state: Arc::clone(&self.state), route: Route::Sse { messages: messages.into() } }
    }

    /// Returns the service to which clients of HTTP+SSE send messages.
    #[must_use]
    pub fn messages(&self) -> Self {
        Self { state: Arc::clone(&self.state), route: Route::Messages }
    }

    /// Returns the number of open legacy sessions.
    pub fn session_count(&self) -> usize {
        self.state.sessions.len()
    }

    /// Ends all streams and sessions gracefully. Later requests are still served, without streams.
    pub fn close(&self) {
        self.state.close();
    }

    pub(super) fn state(&self) -> &Arc<HttpState> {
        &self.state
    }

    /// Handles one request.
    // Not an async fn: its future, and those of its callers, would contain the whole request. Every
    // open connection holds a future of that size.
    pub(super) fn handle<B>(
        &self,
        request: Request<B>,
        connected: Option<IpAddr>,
    ) -> impl Future<Output = Result<Response<Body>, Infallible>>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: fmt::Display,
    {
        let (parts, body) = request.into_parts();
        let parts = Box::new(parts);
        let peer = peer::of(connected, &parts.headers, &self.state.config.trusted_proxies);
        async move { Ok(self.guarded(parts, peer, body).await) }
    }

    async fn guarded<B>(&self, parts: Box<Parts>, peer: Option<IpAddr>, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: fmt::Display,
    {
        let state = &self.state;
        let headers = &parts.headers;
        if !allowlist::host_allowed(&state.hosts, headers, &parts.uri) {
            let refused = reply::problem(
                StatusCode::FORBIDDEN,
                "this Host is not permitted; add it with `allow_host`",
            );
            return Box::pin(unread(body, refused)).await;
        }
        if let Some(document) = state.document(parts.uri.path()) {
            return reply::document(&parts.method, document);
        }
        if let Some((routes, limit)) = routes::find(&state.config.routes, parts.uri.path()) {
            let context = routes::RouteContext {
                reading: state.body_reading(limit),
                streams: state.stream_settings(),
                authenticator: state.config.authenticator.as_ref(),
                peer,
            };
            return Box::pin(routes::respond(routes, context, *parts, body)).await;
        }
        if !allowlist::origin_allowed(&state.config.origins, headers) {
            let refused = reply::problem(
                StatusCode::FORBIDDEN,
                "this Origin is not permitted; add it with `allow_origin`",
            );
            return Box::pin(unread(body, refused)).await;
        }
        let origin = headers.get(header::ORIGIN).cloned();
        let mut response = if parts.method == Method::OPTIONS && origin.is_some() {
            cors::preflight(headers)
        } else if let (Route::ByPath, Some(token)) =
            (&self.route, external_event::token(state, parts.uri.path()))
        {
            Box::pin(external_event::take(state, &parts.method, token, peer, body)).await
        } else if let (Route::ByPath, Some(page)) =
            (&self.route, state.config.pages.find(parts.uri.path()))
        {
            Box::pin(pages::show(page, &parts.method)).await
        } else {
            self.authenticated(parts, peer, body).await
        };
        if let Some(origin) = origin {
            cors::allow(origin, response.headers_mut());
        }
        response
    }

    async fn authenticated<B>(
        &self,
        mut parts: Box<Parts>,
        peer: Option<IpAddr>,
        body: B,
    ) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: fmt::Display,
    {
        let principal = match &self.state.config.authenticator {
            None => Principal::ANONYMOUS,
            Some(authenticator) => {
                let verdict = match authenticator.authenticate(&parts) {
                    AuthDecision::Now(verdict) => verdict,
                    AuthDecision::Later(verdict) => verdict.await,
                };
                // An agent reads MCP tokens in its configuration, so a token that decides must
                // not work here.
                let accepted = verdict.and_then(|principal| match principal.is_deciding() {
                    true => Err(AuthRejection::deciding_credential()),
                    false => Ok(principal),
                });
                let principal = match accepted {
                    Ok(principal) => principal,
                    Err(denied) => {
                        let refused = reply::denied(&denied);
                        return Box::pin(unread(body, refused)).await;
                    }
                };
                // The token is for this server only. Without the header, a handler cannot forward
                // it.
                parts.headers.remove(header::AUTHORIZATION);
                parts.headers.remove(DPOP);
                principal
            }
        };
        self.route(Head { parts, principal, peer }, body).await
    }

    async fn route<B>(&self, head: Head, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: fmt::Display,
    {
        let state = &self.state;
        let (path, method) = (head.parts.uri.path(), &head.parts.method);
        let old =
            state.config.http_sse && state.endpoint.profile().versions.any(|rules| rules.sessions);
        let route = match &self.route {
            Route::ByPath if path == state.config.path => &Route::Endpoint,
            Route::ByPath if old && path == "/sse" => &Route::Sse { messages: "/messages".into() },
            Route::ByPath if old && path == "/messages" => &Route::Messages,
            route => route,
        };
        match (route, method) {
            (Route::Endpoint, &Method::POST) => post::post(state, head, body).await,
            (Route::Endpoint, &Method::GET) => Box::pin(get::get(state, head)).await,
            (Route::Endpoint, &Method::DELETE) => Box::pin(delete::delete(state, head)).await,
            (Route::Endpoint, _) => reply::method_not_allowed(state.methods()),
            (Route::Sse { messages }, &Method::GET) => http_sse::open(state, &head, messages),
            (Route::Sse { .. }, _) => reply::method_not_allowed("GET"),
            (Route::Messages, &Method::POST) => {
                Box::pin(http_sse::message(state, head, body)).await
            }
            (Route::Messages, _) => reply::method_not_allowed("POST"),
            (Route::ByPath, _) => {
                let message = format!("not found; the MCP endpoint is {}", state.config.path);
                reply::problem(StatusCode::NOT_FOUND, &message)
            }
        }
    }
}

impl<B> tower_service::Service<Request<B>> for HttpService
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        let connected = request.extensions().get::<SocketAddr>().map(SocketAddr::ip);
        Box::pin(async move { service.handle(request, connected).await })
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService")
            .field("config", &self.state.config)
            .field("sessions", &self.state.sessions)
            .finish_non_exhaustive()
    }
}

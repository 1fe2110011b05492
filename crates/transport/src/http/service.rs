//! The tower service: everything that happens to a request before and after its message is read.

use std::{
    convert::Infallible,
    fmt,
    future::Future,
    net::{IpAddr, SocketAddr},
    pin::Pin,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderName, Method, Request, Response, StatusCode, header, request::Parts};
use outlive_protocol::{Endpoint, Principal, Session, era};

use super::{
    Allowlist, AuthDecision, Body, EventStore, HttpConfig, MemoryEventStore, allowlist,
    auth::DPOP,
    cors, delete, external_event, get, http_sse, pages, peer,
    post::{self, Head},
    reply, routes,
    session_lookup::Named,
    sessions::{Full, HttpSession, Inserted, SessionLimits, Sessions},
};
use crate::{
    budget::{Budget, Names},
    caller::Caller,
    shares::Shares,
    tasks::Tasks,
    warnings::Warnings,
};

/// Names the session of a legacy request.
pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

/// An MCP server as a tower service.
///
/// Mount it where you like: it answers on every path it is given. [`HttpService::sse`] and
/// [`HttpService::messages`] are the two paths of HTTP+SSE, for clients of 2024-11-05.
#[derive(Clone)]
pub struct HttpService {
    shared: Arc<Shared>,
    route: Route,
}

/// Which of the paths a service answers for.
#[derive(Clone, Debug)]
enum Route {
    Endpoint,
    Sse {
        messages: Arc<str>,
    },
    Messages,
    /// All of them, by the request's path.
    ByPath,
}

/// What all requests share.
pub(super) struct Shared {
    pub(super) endpoint: Endpoint,
    pub(super) config: HttpConfig,
    pub(super) hosts: Allowlist,
    pub(super) sessions: Sessions,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) streams: http_sse::Streams,
    /// Bytes of requests that are read or run.
    pub(super) requests: Budget,
    /// Bytes of responses and streams that their clients have not read.
    pub(super) unread: Budget,
    /// Calls that wait.
    pub(super) waiting: Arc<Shares<Caller>>,
    pub(super) stray_warnings: Warnings,
    pub(super) session_warnings: Warnings,
    /// Calls whose clients have left.
    pub(super) tasks: Tasks,
    sweeper: Tasks,
    sweeping: Once,
    closing: AtomicBool,
}

impl HttpService {
    /// Serves an endpoint over HTTP.
    pub fn new(endpoint: Endpoint, config: HttpConfig) -> Self {
        Self {
            shared: Arc::new(Shared::new(endpoint, config, Allowlist::Loopback)),
            route: Route::Endpoint,
        }
    }

    /// A service that routes by path, for a listener of our own.
    pub(super) fn by_path(
        endpoint: Endpoint,
        config: HttpConfig,
        default_hosts: Allowlist,
    ) -> Self {
        Self {
            shared: Arc::new(Shared::new(endpoint, config, default_hosts)),
            route: Route::ByPath,
        }
    }

    /// The stream of HTTP+SSE; `messages` is the path at which [`HttpService::messages`] is mounted.
    #[must_use]
    pub fn sse(&self, messages: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), route: Route::Sse { messages: messages.into() } }
    }

    /// The path to which clients of HTTP+SSE post.
    #[must_use]
    pub fn messages(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), route: Route::Messages }
    }

    /// How many legacy sessions are open.
    pub fn session_count(&self) -> usize {
        self.shared.sessions.len()
    }

    /// Ends all streams and sessions properly; requests that still come are served without.
    pub fn close(&self) {
        self.shared.close();
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Takes one request.
    // Not an async fn, which would have to keep the request, and so would all that it calls: every
    // connection has a future of that size for as long as it is open.
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
        let peer = peer::of(connected, &parts.headers, &self.shared.config.trusted_proxies);
        async move { Ok(self.guarded(parts, peer, body).await) }
    }

    async fn guarded<B>(&self, parts: Box<Parts>, peer: Option<IpAddr>, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: fmt::Display,
    {
        let shared = &self.shared;
        let headers = &parts.headers;
        if !allowlist::host_allowed(&shared.hosts, headers, &parts.uri) {
            let refused = reply::problem(
                StatusCode::FORBIDDEN,
                "this Host is not served here; allow it with `allow_host` if it should be",
            );
            return Box::pin(post::unread(body, refused)).await;
        }
        if let Some(document) = shared.document(parts.uri.path()) {
            return reply::document(&parts.method, document);
        }
        if let Some(found) = routes::find(shared, parts.uri.path()) {
            return Box::pin(routes::answer(shared, found, *parts, peer, body)).await;
        }
        if !allowlist::origin_allowed(&shared.config.origins, headers) {
            let refused = reply::problem(
                StatusCode::FORBIDDEN,
                "this Origin may not use the server; allow it with `allow_origin` if it should",
            );
            return Box::pin(post::unread(body, refused)).await;
        }
        let origin = headers.get(header::ORIGIN).cloned();
        let mut response = if parts.method == Method::OPTIONS && origin.is_some() {
            cors::preflight(headers)
        } else if let (Route::ByPath, Some(token)) =
            (&self.route, external_event::token(shared, parts.uri.path()))
        {
            Box::pin(external_event::take(shared, &parts.method, token, peer, body)).await
        } else if let (Route::ByPath, Some(page)) =
            (&self.route, shared.config.pages.find(parts.uri.path()))
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
        let principal = match &self.shared.config.authenticator {
            None => Principal::ANONYMOUS,
            Some(authenticator) => {
                let verdict = match authenticator.authenticate(&parts) {
                    AuthDecision::Now(verdict) => verdict,
                    AuthDecision::Later(verdict) => verdict.await,
                };
                let principal = match verdict {
                    Ok(principal) => principal,
                    Err(denied) => {
                        let refused = reply::denied(&denied);
                        return Box::pin(post::unread(body, refused)).await;
                    }
                };
                // A token is for us and nobody else: what handlers do not have they cannot pass on.
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
        let shared = &self.shared;
        let (path, method) = (head.parts.uri.path(), &head.parts.method);
        let old = shared.config.http_sse
            && shared.endpoint.profile().versions.any(|rules| rules.sessions);
        let route = match &self.route {
            Route::ByPath if path == shared.config.path => &Route::Endpoint,
            Route::ByPath if old && path == "/sse" => &Route::Sse { messages: "/messages".into() },
            Route::ByPath if old && path == "/messages" => &Route::Messages,
            route => route,
        };
        match (route, method) {
            (Route::Endpoint, &Method::POST) => post::post(shared, head, body).await,
            (Route::Endpoint, &Method::GET) => Box::pin(get::get(shared, head)).await,
            (Route::Endpoint, &Method::DELETE) => Box::pin(delete::delete(shared, head)).await,
            (Route::Endpoint, _) => reply::method_not_allowed(shared.methods()),
            (Route::Sse { messages }, &Method::GET) => http_sse::open(shared, &head, messages),
            (Route::Sse { .. }, _) => reply::method_not_allowed("GET"),
            (Route::Messages, &Method::POST) => {
                Box::pin(http_sse::message(shared, head, body)).await
            }
            (Route::Messages, _) => reply::method_not_allowed("POST"),
            (Route::ByPath, _) => {
                let message =
                    format!("there is nothing here; the MCP endpoint is {}", shared.config.path);
                reply::problem(StatusCode::NOT_FOUND, &message)
            }
        }
    }
}

impl Shared {
    fn new(endpoint: Endpoint, config: HttpConfig, default_hosts: Allowlist) -> Self {
        let now = endpoint.profile().clock.now();
        let events = config.events.clone().unwrap_or_else(|| {
            Arc::new(MemoryEventStore::default().max_bytes(config.max_event_bytes))
        });
        let limits = SessionLimits {
            max: config.max_sessions,
            max_per_caller: config.max_sessions_per_caller,
            idle: config.session_idle,
        };
        let seal = endpoint.profile().seal.clone();
        Self {
            sessions: Sessions::new(Arc::clone(&events), seal, limits, now),
            events,
            hosts: config.hosts.clone().unwrap_or(default_hosts),
            streams: http_sse::Streams::new(config.max_sessions_per_caller),
            requests: Budget::new(
                config.max_request_bytes_per_caller,
                config.max_request_bytes,
                Names { per_caller: "max_request_bytes_per_caller", total: "max_request_bytes" },
            ),
            unread: Budget::new(
                config.max_unread_bytes_per_caller,
                config.max_unread_bytes,
                Names { per_caller: "max_unread_bytes_per_caller", total: "max_unread_bytes" },
            ),
            waiting: Shares::new(config.max_waiting_calls_per_caller),
            stray_warnings: Warnings::default(),
            session_warnings: Warnings::default(),
            endpoint,
            config,
            tasks: Tasks::default(),
            sweeper: Tasks::default(),
            sweeping: Once::new(),
            closing: AtomicBool::new(false),
        }
    }

    pub(super) fn now(&self) -> Instant {
        self.endpoint.profile().clock.now()
    }

    /// What anybody may read at a path, to find out how to be let in.
    fn document(&self, path: &str) -> Option<Bytes> {
        let authenticator = self.config.authenticator.as_ref()?;
        path.starts_with("/.well-known/").then(|| authenticator.document(path))?
    }

    pub(super) fn keeps_sessions(&self) -> bool {
        self.config.sessions && self.endpoint.profile().versions.any(|rules| rules.sessions)
    }

    /// The methods of the endpoint, for `Allowlist`.
    pub(super) fn methods(&self) -> &'static str {
        if self.keeps_sessions() { "POST, GET, DELETE" } else { "POST" }
    }

    /// The session of a request that makes no sense without one.
    pub(super) async fn required_session(
        self: &Arc<Self>,
        head: &Head,
    ) -> Result<Arc<HttpSession>, Box<Response<Body>>> {
        let (headers, principal) = (&head.parts.headers, &head.principal);
        let named = match self.named_session(headers, principal) {
            Named::None => None,
            Named::Unknown => Some(None),
            Named::Here(entry) => Some(Some(entry)),
            Named::Unsure(here) => {
                Some(Box::pin(self.settle(headers, principal, head.peer, here)).await?)
            }
        };
        let entry = match named {
            Some(Some(entry)) => entry,
            Some(None) => {
                let message = "unknown session; send `initialize` again";
                return Err(Box::new(reply::problem(StatusCode::NOT_FOUND, message)));
            }
            None => {
                let message = "the Mcp-Session-Id header is missing; send `initialize` first";
                return Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, message)));
            }
        };
        match era::check_version_header(&entry.session, self.endpoint.profile(), headers) {
            Ok(()) => Ok(entry),
            Err(fault) => {
                Err(Box::new(reply::problem(StatusCode::BAD_REQUEST, &fault.to_string())))
            }
        }
    }

    /// Enters a session, if there is room for it, and ends the one that has to make room.
    pub(super) fn enter(
        self: &Arc<Self>,
        id: Arc<str>,
        session: Arc<Session>,
        caller: Option<Caller>,
    ) -> Result<(Arc<HttpSession>, Option<Arc<HttpSession>>), Full> {
        let (entry, ended) = match self.sessions.insert(id, session, caller, self.now())? {
            Inserted::Now { entry, ended } => (entry, ended),
            Inserted::Before(entry) => return Ok((entry, None)),
        };
        if let Some(ended) = &ended {
            self.sessions.end(ended);
            self.endpoint.service().session_closed(&ended.session);
        }
        self.endpoint.service().session_opened(&entry.session);
        self.sweeping.call_once(|| self.sweeper.spawn(sweep(Arc::downgrade(self))));
        Ok((entry, ended))
    }

    /// Ends a session here.
    pub(super) fn end_session(&self, id: &str) {
        if let Some(entry) = self.sessions.remove(id) {
            self.endpoint.service().session_closed(&entry.session);
        }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    /// Ends streams properly: subscriptions with their result, sessions with their feeds.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Relaxed);
        self.endpoint.profile().bus.close();
        http_sse::close_all(self);
    }

    /// Ends what is left when the time to end by itself is over.
    pub(super) fn end_all(&self) {
        for entry in self.sessions.drain() {
            self.sessions.end(&entry);
            self.endpoint.service().session_closed(&entry.session);
        }
        self.tasks.abort_all();
        self.sweeper.abort_all();
    }
}

/// Ends sessions that have been idle for too long, for as long as the server lives.
async fn sweep(shared: std::sync::Weak<Shared>) {
    loop {
        let Some((clock, pause)) = shared.upgrade().map(|shared| {
            let pause = (shared.config.session_idle / 10).max(std::time::Duration::from_millis(10));
            (Arc::clone(&shared.endpoint.profile().clock), pause)
        }) else {
            return;
        };
        clock.sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        for entry in shared.sessions.sweep(shared.now()) {
            shared.endpoint.service().session_closed(&entry.session);
        }
        shared.confirm_busy().await;
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
            .field("config", &self.shared.config)
            .field("sessions", &self.shared.sessions)
            .finish_non_exhaustive()
    }
}

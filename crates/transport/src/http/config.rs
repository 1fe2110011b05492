//! Settings of the HTTP server. The default of every limit is suitable for production.

use std::{fmt, future::Future, net::IpAddr, sync::Arc, time::Duration};

use http::StatusCode;

use super::{Allowlist, Authenticator, EventStore, Routes, events::MAX_BYTES, pages::Pages};

/// Settings of the HTTP server.
#[derive(Clone)]
#[must_use]
pub struct HttpConfig {
    pub(super) path: String,
    pub(super) external_event_path: Option<String>,
    pub(super) hosts: Option<Allowlist>,
    pub(super) origins: Allowlist,
    pub(super) authenticator: Option<Arc<dyn Authenticator>>,
    pub(super) event_store: Option<Arc<dyn EventStore>>,
    pub(super) max_event_bytes: usize,
    pub(super) sessions: bool,
    pub(super) max_sessions: usize,
    pub(super) max_sessions_per_caller: usize,
    pub(super) session_idle_timeout: Duration,
    pub(super) http_sse: bool,
    pub(super) stream_after: Duration,
    pub(super) keep_alive_interval: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) head_timeout: Duration,
    pub(super) body_timeout: Duration,
    pub(super) write_timeout: Duration,
    pub(super) max_connections: usize,
    pub(super) max_connections_per_address: usize,
    pub(super) max_waiting_calls_per_caller: usize,
    pub(super) max_request_bytes: usize,
    pub(super) max_request_bytes_per_caller: usize,
    pub(super) max_unread_bytes: usize,
    pub(super) max_unread_bytes_per_caller: usize,
    pub(super) shutdown_grace: Duration,
    pub(super) allow_anonymous: bool,
    pub(super) trusted_proxies: Vec<IpAddr>,
    pub(super) pages: Pages,
    pub(super) routes: Vec<Arc<dyn Routes>>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            path: "/mcp".into(),
            external_event_path: None,
            hosts: None,
            origins: Allowlist::Loopback,
            authenticator: None,
            event_store: None,
            max_event_bytes: MAX_BYTES,
            sessions: true,
            max_sessions: 10_000,
            max_sessions_per_caller: 256,
            session_idle_timeout: Duration::from_secs(30 * 60),
            http_sse: true,
            stream_after: Duration::from_secs(5),
            keep_alive_interval: Duration::from_secs(15),
            idle_timeout: Duration::from_secs(75),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(60),
            max_connections: 20_000,
            max_connections_per_address: 256,
            max_waiting_calls_per_caller: 1_000,
            max_request_bytes: 64 << 20,
            max_request_bytes_per_caller: 8 << 20,
            max_unread_bytes: 128 << 20,
            max_unread_bytes_per_caller: 8 << 20,
            shutdown_grace: Duration::from_secs(10),
            allow_anonymous: false,
            trusted_proxies: Vec::new(),
            pages: Pages::default(),
            routes: Vec::new(),
        }
    }
}

impl HttpConfig {
    /// Creates the default settings: `/mcp`, loopback only, sessions for legacy clients, no
    /// authenticator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts external events by POST to `{path}/{token}`, with the value as JSON. Disabled by
    /// default.
    ///
    /// The completion token is the only credential. Only the listener of [`serve`](super::serve)
    /// has this endpoint.
    pub fn external_event_path(mut self, path: impl Into<String>) -> Self {
        self.external_event_path = Some(path.into());
        self
    }

    /// Sets the path of the endpoint.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Adds a host name under which clients reach this server, without a port.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.get_or_insert(Allowlist::Loopback).add(host.into());
        self
    }

    /// Accepts any `Host`. Use this only behind a proxy that checks the header.
    pub fn allow_any_host(mut self) -> Self {
        self.hosts = Some(Allowlist::Any);
        self
    }

    /// Adds an origin whose web pages may use this server, as in `https://app.example`.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.add(origin.into());
        self
    }

    /// Permits web pages of every origin.
    pub fn allow_any_origin(mut self) -> Self {
        self.origins = Allowlist::Any;
        self
    }

    /// Sets the authenticator.
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Sets whether anonymous clients are served on an address that other machines can reach. Such
    /// an address otherwise requires an authenticator.
    pub fn allow_anonymous(mut self, allowed: bool) -> Self {
        self.allow_anonymous = allowed;
        self
    }

    /// Sets the store for events of legacy streams, from which clients resume lost streams.
    pub fn event_store(mut self, events: impl EventStore) -> Self {
        self.event_store = Some(Arc::new(events));
        self
    }

    /// Sets the maximum bytes of events in memory for all sessions together. Each session stores at
    /// most 1 MiB. A custom [`EventStore`] has its own limit.
    pub fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Sets whether legacy clients get sessions. Enabled by default. Without sessions, the server
    /// keeps no state between their requests.
    pub fn sessions(mut self, enabled: bool) -> Self {
        self.sessions = enabled;
        self
    }

    /// Sets the maximum number of sessions in this process.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets the maximum number of sessions per caller in this process.
    ///
    /// A further session replaces the caller's longest idle session, and is rejected if no session
    /// is idle. Streams of HTTP+SSE are counted separately.
    pub fn max_sessions_per_caller(mut self, sessions: usize) -> Self {
        self.max_sessions_per_caller = sessions;
        self
    }

    /// Sets how long a session may be idle. A session with a call or an open stream is not idle.
    ///
    /// If replicas share sessions, an idle session is removed from this process and stays in the
    /// store for twice this time.
    pub fn session_idle_timeout(mut self, idle: Duration) -> Self {
        self.session_idle_timeout = idle;
        self
    }

    /// Sets whether HTTP+SSE of 2024-11-05 (`/sse` and `/messages`) is served. Enabled by default.
    pub fn http_sse(mut self, enabled: bool) -> Self {
        self.http_sse = enabled;
        self
    }

    /// Sets the time after which a call without output gets an event stream as its response.
    pub fn stream_after(mut self, after: Duration) -> Self {
        self.stream_after = after;
        self
    }

    /// Sets the interval of keep-alive comments on an idle stream.
    pub fn keep_alive_interval(mut self, interval: Duration) -> Self {
        self.keep_alive_interval = interval;
        self
    }

    /// Sets how long a connection may be idle between two requests, take to send the next request
    /// head, or pause within a body.
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.idle_timeout = idle;
        self
    }

    /// Sets how long a new connection may take to send the head of its first request.
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.head_timeout = timeout;
        self
    }

    /// Sets how long a request body may take from its first to its last byte.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    /// Sets how long a client may read nothing before the server closes its connection.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }

    /// Sets the maximum number of connections. Further connections wait in the queue of the
    /// operating system.
    ///
    /// The server also reserves a quarter of the process's open file limit for other uses.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Sets the maximum number of connections per address. An IPv6 /64 network counts as one
    /// address. [Trusted proxies](Self::trusted_proxy) are exempt.
    pub fn max_connections_per_address(mut self, connections: usize) -> Self {
        self.max_connections_per_address = connections;
        self
    }

    /// Sets the maximum number of waiting calls per caller, over all its sessions and connections.
    /// Subscriptions and calls that complete immediately do not count.
    pub fn max_waiting_calls_per_caller(mut self, calls: usize) -> Self {
        self.max_waiting_calls_per_caller = calls;
        self
    }

    /// Sets the maximum bytes of requests in memory for all callers, while the requests are read
    /// and while their calls run.
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.max_request_bytes = bytes;
        self
    }

    /// Sets the maximum bytes of requests in memory per caller. A single request may exceed it.
    pub fn max_request_bytes_per_caller(mut self, bytes: usize) -> Self {
        self.max_request_bytes_per_caller = bytes;
        self
    }

    /// Sets the maximum bytes of responses and streams in memory that clients have not read, for
    /// all callers.
    pub fn max_unread_bytes(mut self, bytes: usize) -> Self {
        self.max_unread_bytes = bytes;
        self
    }

    /// Sets the maximum unread bytes per caller. A single response may exceed it.
    pub fn max_unread_bytes_per_caller(mut self, bytes: usize) -> Self {
        self.max_unread_bytes_per_caller = bytes;
        self
    }

    /// Trusts the `X-Forwarded-For` header of a proxy at this address.
    ///
    /// The last address in the header that is not trusted is the client's address, which identifies
    /// anonymous callers. By default no proxy is trusted, because every client can set the header.
    pub fn trusted_proxy(mut self, address: impl Into<IpAddr>) -> Self {
        self.trusted_proxies.push(address.into().to_canonical());
        self
    }

    /// Serves a text page at `path` without authentication, for health checks and metrics.
    ///
    /// Only the listener of [`serve`](super::serve) serves pages. An application that mounts the
    /// endpoint serves its own.
    pub fn text_page<F, Fut>(mut self, path: impl Into<String>, page: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = (StatusCode, String)> + Send + 'static,
    {
        self.pages.add(path.into(), page);
        self
    }

    /// Serves the routes of an application, such as an authorization server, next to the endpoint.
    /// Routes are not authenticated.
    pub fn routes(mut self, routes: impl Routes) -> Self {
        self.routes.push(Arc::new(routes));
        self
    }

    /// Sets how long running calls may take to finish during a graceful shutdown.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }
}

/// Formats every field of [`HttpConfig`]. Does not compile if a field is missing.
macro_rules! debug_fields {
    ($f:ident, $config:expr, [$($field:ident),* $(,)?], [$($other:ident: $shown:expr),* $(,)?]) => {{
        let HttpConfig { $($field,)* $($other: _),* } = $config;
        let mut shown = $f.debug_struct("HttpConfig");
        $(shown.field(stringify!($field), $field);)*
        $(shown.field(stringify!($other), &$shown);)*
        shown.finish()
    }};
}

// A test compares this list of settings with `docs/limits.md`.
impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        debug_fields!(
            f,
            self,
            [
                path,
                external_event_path,
                hosts,
                origins,
                max_event_bytes,
                sessions,
                max_sessions,
                max_sessions_per_caller,
                session_idle_timeout,
                http_sse,
                stream_after,
                keep_alive_interval,
                idle_timeout,
                head_timeout,
                body_timeout,
                write_timeout,
                max_connections,
                max_connections_per_address,
                max_waiting_calls_per_caller,
                max_request_bytes,
                max_request_bytes_per_caller,
                max_unread_bytes,
                max_unread_bytes_per_caller,
                shutdown_grace,
                allow_anonymous,
                trusted_proxies,
            ],
            [
                authenticator: self.authenticator.is_some(),
                event_store: format_args!("…"),
                pages: self.pages.paths().collect::<Vec<_>>(),
                routes: !self.routes.is_empty(),
            ]
        )
    }
}

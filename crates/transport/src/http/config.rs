//! How HTTP is served. Every limit has a default that is meant for production.

use std::{fmt, future::Future, net::IpAddr, sync::Arc, time::Duration};

use http::StatusCode;

use super::{Allowlist, Authenticator, EventStore, Routes, events::MAX_BYTES, pages::Pages};

/// How HTTP is served.
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
    /// The defaults: `/mcp`, loopback only, sessions for legacy clients, no authenticator.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes what tasks wait for from outside by POST below this path: `{path}/{token}`, the value
    /// as JSON. Off by default. Whoever posts needs the token and nothing else. Only the listener of
    /// [`serve`](super::serve) has it.
    pub fn external_event_path(mut self, path: impl Into<String>) -> Self {
        self.external_event_path = Some(path.into());
        self
    }

    /// The path of the endpoint.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Adds a host name under which clients reach this server, without a port.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.get_or_insert(Allowlist::Loopback).add(host.into());
        self
    }

    /// Takes requests whatever their `Host` says. Only where a proxy checks it.
    pub fn allow_any_host(mut self) -> Self {
        self.hosts = Some(Allowlist::Any);
        self
    }

    /// Adds an origin whose web pages may use this server, as in `https://app.example`.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.add(origin.into());
        self
    }

    /// Lets web pages of every origin use this server.
    pub fn allow_any_origin(mut self) -> Self {
        self.origins = Allowlist::Any;
        self
    }

    /// Who names the callers.
    pub fn authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Whether callers without credentials are served on an address that others can reach. Without
    /// this, such an address needs an authenticator.
    pub fn allow_anonymous(mut self, allowed: bool) -> Self {
        self.allow_anonymous = allowed;
        self
    }

    /// Where the events of legacy streams are kept for clients that come back.
    pub fn event_store(mut self, events: impl EventStore) -> Self {
        self.event_store = Some(Arc::new(events));
        self
    }

    /// How many bytes of events are kept in memory for clients that come back, of all sessions
    /// together; each has 1 MiB at most. An [`EventStore`] of your own has its own limit.
    pub fn max_event_bytes(mut self, bytes: usize) -> Self {
        self.max_event_bytes = bytes;
        self
    }

    /// Whether legacy clients get sessions; on by default. Without them the server remembers nothing
    /// between their requests.
    pub fn sessions(mut self, enabled: bool) -> Self {
        self.sessions = enabled;
        self
    }

    /// How many sessions there may be at once, in this process.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// How many sessions one caller may have at once, in this process: a principal, or an address if
    /// callers have no name. One more ends that caller's own session that was idle for longest, and is
    /// refused if none is idle. Streams of HTTP+SSE are counted apart.
    pub fn max_sessions_per_caller(mut self, sessions: usize) -> Self {
        self.max_sessions_per_caller = sessions;
        self
    }

    /// How long a session may be idle. One with a call or a stream is never idle. Where all replicas
    /// know the sessions, an idle one is forgotten here and kept for them, for twice as long.
    pub fn session_idle_timeout(mut self, idle: Duration) -> Self {
        self.session_idle_timeout = idle;
        self
    }

    /// Whether the HTTP+SSE pair of 2024-11-05 (`/sse` and `/messages`) is served; on by default.
    pub fn http_sse(mut self, enabled: bool) -> Self {
        self.http_sse = enabled;
        self
    }

    /// After how long a call that has said nothing yet is answered as a stream.
    pub fn stream_after(mut self, after: Duration) -> Self {
        self.stream_after = after;
        self
    }

    /// How often a quiet stream shows that it is alive.
    pub fn keep_alive_interval(mut self, interval: Duration) -> Self {
        self.keep_alive_interval = interval;
        self
    }

    /// How long a connection may wait between two requests, take to send the head of the next one, or
    /// pause while it sends a body.
    pub fn idle_timeout(mut self, idle: Duration) -> Self {
        self.idle_timeout = idle;
        self
    }

    /// How long a new connection may take to send the head of its first request.
    pub fn head_timeout(mut self, timeout: Duration) -> Self {
        self.head_timeout = timeout;
        self
    }

    /// How long a request's body may take from its first byte to its last.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.body_timeout = timeout;
        self
    }

    /// How long a client may read nothing of what is sent to it before its connection is closed.
    pub fn write_timeout(mut self, timeout: Duration) -> Self {
        self.write_timeout = timeout;
        self
    }

    /// How many connections there may be at once; more wait in the operating system's queue. Of the
    /// files that the process may open, a quarter is left for others in any case.
    pub fn max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// How many connections one address may have at once; of IPv6, one network of 64 bits. Proxies
    /// that are [trusted](Self::trusted_proxy) may have any number: they speak for many.
    pub fn max_connections_per_address(mut self, connections: usize) -> Self {
        self.max_connections_per_address = connections;
        self
    }

    /// How many calls of one caller may wait at once, in all of its sessions and connections
    /// together. Calls that are answered at once and subscriptions are not counted.
    pub fn max_waiting_calls_per_caller(mut self, calls: usize) -> Self {
        self.max_waiting_calls_per_caller = calls;
        self
    }

    /// How many bytes of requests of all callers together are held at once, while they are read and
    /// while their calls run.
    pub fn max_request_bytes(mut self, bytes: usize) -> Self {
        self.max_request_bytes = bytes;
        self
    }

    /// The same, of one caller. One request is taken in any case.
    pub fn max_request_bytes_per_caller(mut self, bytes: usize) -> Self {
        self.max_request_bytes_per_caller = bytes;
        self
    }

    /// How many bytes of responses and streams of all callers together are held at once because their
    /// clients have not read them.
    pub fn max_unread_bytes(mut self, bytes: usize) -> Self {
        self.max_unread_bytes = bytes;
        self
    }

    /// The same, of one caller. One response is sent in any case.
    pub fn max_unread_bytes_per_caller(mut self, bytes: usize) -> Self {
        self.max_unread_bytes_per_caller = bytes;
        self
    }

    /// Takes the word of a proxy at this address for where requests come from: the last address in
    /// `X-Forwarded-For` that is not itself trusted. Callers without a name are counted by address.
    /// By default nobody is trusted, because every client can write that header.
    pub fn trusted_proxy(mut self, address: impl Into<IpAddr>) -> Self {
        self.trusted_proxies.push(address.into().to_canonical());
        self
    }

    /// Shows a text at a path of its own, to anybody who may reach the server, without a token: for
    /// health checks and metrics. A listener of ours shows it; in an application of your own, pages
    /// are the application's.
    pub fn text_page<F, Fut>(mut self, path: impl Into<String>, page: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = (StatusCode, String)> + Send + 'static,
    {
        self.pages.add(path.into(), page);
        self
    }

    /// Serves paths of an application beside the endpoint, to whom it likes: no token is asked for. An
    /// authorization server is such an application.
    pub fn routes(mut self, routes: impl Routes) -> Self {
        self.routes.push(Arc::new(routes));
        self
    }

    /// How long running calls may take to end when the server shuts down.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.shutdown_grace = grace;
        self
    }
}

/// Writes every field of [`HttpConfig`]; does not compile if one is missing.
macro_rules! debug_fields {
    ($f:ident, $config:expr, [$($field:ident),* $(,)?], [$($other:ident: $shown:expr),* $(,)?]) => {{
        let HttpConfig { $($field,)* $($other: _),* } = $config;
        let mut shown = $f.debug_struct("HttpConfig");
        $(shown.field(stringify!($field), $field);)*
        $(shown.field(stringify!($other), &$shown);)*
        shown.finish()
    }};
}

// Every setting is named, and a new one has to be: `docs/limits.md` is held against this.
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

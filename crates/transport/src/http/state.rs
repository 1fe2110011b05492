//! State of a running HTTP server: its endpoint, its settings and the data that requests share.

use std::{
    net::IpAddr,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use outlive_protocol::{Endpoint, Principal, SessionStore};

use super::{
    allowlist::Allowlist,
    body::StreamSettings,
    config::HttpConfig,
    events::{EventStore, MemoryEventStore},
    request_body::Reading,
    sessions::{SessionLimits, Sessions},
    sse_streams::SseStreams,
};
use crate::{
    budget::{Budget, Names},
    caller::Caller,
    shares::Shares,
    tasks::Tasks,
    warnings::Warnings,
};

/// State that all requests share.
pub(super) struct HttpState {
    pub(super) endpoint: Endpoint,
    pub(super) config: HttpConfig,
    pub(super) hosts: Allowlist,
    pub(super) sessions: Sessions,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) sse_streams: SseStreams,
    /// Bytes of requests that are being read or executed.
    pub(super) requests: Budget,
    /// Bytes of responses and streams that clients have not read.
    pub(super) unread: Budget,
    /// Waiting calls per caller.
    pub(super) waiting: Arc<Shares<Caller>>,
    pub(super) misrouted_warnings: Warnings,
    pub(super) session_warnings: Warnings,
    /// Calls whose clients have disconnected.
    pub(super) tasks: Tasks,
    pub(super) sweeper: Tasks,
    pub(super) sweeping: Once,
    pub(super) closing: AtomicBool,
}

impl HttpState {
    pub(super) fn new(endpoint: Endpoint, config: HttpConfig, default_hosts: Allowlist) -> Self {
        let now = endpoint.profile().clock.now();
        let events = config.event_store.clone().unwrap_or_else(|| {
            Arc::new(MemoryEventStore::default().max_bytes(config.max_event_bytes))
        });
        let limits = SessionLimits {
            max: config.max_sessions,
            max_per_caller: config.max_sessions_per_caller,
            idle: config.session_idle_timeout,
        };
        let seal = endpoint.profile().seal.clone();
        Self {
            sessions: Sessions::new(Arc::clone(&events), seal, limits, now),
            events,
            hosts: config.hosts.clone().unwrap_or(default_hosts),
            sse_streams: SseStreams::new(config.max_sessions_per_caller),
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
            misrouted_warnings: Warnings::default(),
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

    /// Returns the public document at `path`, which describes how to authenticate.
    pub(super) fn document(&self, path: &str) -> Option<Bytes> {
        let authenticator = self.config.authenticator.as_ref()?;
        path.starts_with("/.well-known/").then(|| authenticator.document(path))?
    }

    pub(super) fn keeps_sessions(&self) -> bool {
        self.config.sessions && self.endpoint.profile().versions.any(|rules| rules.sessions)
    }

    /// Returns the methods of the endpoint, for the `Allow` header.
    pub(super) fn methods(&self) -> &'static str {
        if self.keeps_sessions() { "POST, GET, DELETE" } else { "POST" }
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    pub(super) fn session_store(&self) -> Option<&dyn SessionStore> {
        self.endpoint.service().session_store()
    }

    /// Returns the limits for reading the body of a message. Its bytes count against the caller.
    pub(super) fn message_reading<'a>(
        &'a self,
        principal: &'a Principal,
        peer: Option<IpAddr>,
    ) -> Reading<'a> {
        let limit = self.endpoint.profile().limits.max_message_bytes;
        Reading { counted: Some((&self.requests, principal, peer)), ..self.body_reading(limit) }
    }

    /// Returns the limits for reading a body of at most `limit` bytes that is not counted.
    pub(super) fn body_reading(&self, limit: usize) -> Reading<'_> {
        let HttpConfig { idle_timeout: pause, body_timeout: timeout, .. } = self.config;
        Reading { limit, pause, timeout, counted: None }
    }

    /// Returns the settings of event streams.
    pub(super) fn stream_settings(&self) -> StreamSettings<'_> {
        StreamSettings {
            profile: self.endpoint.profile(),
            keep_alive: self.config.keep_alive_interval,
            unread: &self.unread,
        }
    }
}

//! Settings of a client, and the state that outlives a connection.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use http::HeaderMap;
use outlive_protocol::{
    VersionRules,
    era::client::{CapabilityClass, Declared},
};
use outlive_transport::client::{TokenRequest, http::HttpOptions};
use sha2::{Digest, Sha256};
use tokio::{sync::mpsc, time::Instant};

use super::{
    call_store::CallStore,
    dispatch::Dispatch,
    error::{ClientError, Result},
    limits::ClientLimits,
    relay::RoutedEvent,
    server_info::Handshake,
    target::Target,
    version_cache::VersionCache,
};
use crate::hex::hex;

/// Number of headers that a call adds to those of the settings.
const USUAL_HEADERS: usize = 10;

/// Settings that a client has before it connects.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limits: ClientLimits,
    pub(crate) pinned: Option<&'static VersionRules>,
    pub(crate) eras: VersionCache,
    pub(crate) older_first: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) http: HttpOptions,
    pub(crate) with_http_sse: bool,
    pub(crate) knows_keys: Option<bool>,
    pub(crate) account: Option<String>,
    pub(crate) notebook: Option<Arc<dyn CallStore>>,
    /// Receiver of the input requests that arrive on no call's own stream.
    pub(crate) input_events: Option<mpsc::Sender<RoutedEvent>>,
    /// Whether a pipe that closed is opened again.
    pub(crate) reconnects: bool,
    /// ID of the first request.
    pub(crate) first_id: u64,
    /// Handshake that another process performed on the same pipe.
    pub(crate) handshake: Option<Handshake>,
}

/// State that all connections of a client share.
pub(crate) struct ClientEnv {
    pub(crate) target: Target,
    pub(crate) settings: Settings,
    pub(crate) declared: Declared,
    /// Capability class that the client declares in a handshake.
    pub(crate) class: CapabilityClass,
    pub(crate) dispatch: Arc<Dispatch>,
    ids: AtomicU64,
    /// Whether the server on the pipe needed a handshake.
    older: AtomicBool,
    /// Whether to try the handshake before the server's era is known.
    older_first: AtomicBool,
    /// Whether the handshake of another process was used.
    is_restored: AtomicBool,
}

impl fmt::Debug for ClientEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientEnv").field("target", &self.target).finish_non_exhaustive()
    }
}

impl ClientEnv {
    pub(crate) fn new(
        target: Target,
        settings: Settings,
        declared: Declared,
        dispatch: Arc<Dispatch>,
    ) -> Self {
        let older_first = settings.older_first.into();
        let (ids, older) = (AtomicU64::new(settings.first_id), false.into());
        let class = CapabilityClass::from_capabilities(&declared.capabilities);
        let is_restored = false.into();
        Self { target, settings, declared, class, dispatch, ids, older, older_first, is_restored }
    }

    /// Returns a request ID that this client has not used.
    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the handshake of another process, once: a pipe that is opened again needs its own.
    pub(crate) fn take_handshake(&self) -> Option<&Handshake> {
        let handshake = self.settings.handshake.as_ref()?;
        (!self.is_restored.swap(true, Ordering::AcqRel)).then_some(handshake)
    }

    pub(crate) fn limits(&self) -> &ClientLimits {
        &self.settings.limits
    }

    pub(crate) fn was_older(&self) -> bool {
        self.older.load(Ordering::Acquire)
    }

    pub(crate) fn note_older(&self) {
        self.older.store(true, Ordering::Release);
    }

    /// Whether to try the legacy handshake first.
    pub(crate) fn tries_older_first(&self) -> bool {
        self.older_first.load(Ordering::Acquire)
    }

    /// Records that the server is not legacy.
    pub(crate) fn note_not_older(&self) {
        self.older_first.store(false, Ordering::Release);
    }

    /// Returns a digest of the current token, which identifies the caller.
    pub(crate) async fn caller(&self) -> Result<Option<String>> {
        let (Some(tokens), Target::Url(url)) = (&self.settings.http.tokens, &self.target) else {
            return Ok(None);
        };
        let token = tokens.token(&TokenRequest::new(&http::Method::POST, url)).await;
        let token = token.map_err(ClientError::NoToken)?;
        Ok(token.map(|token| hex(&Sha256::digest(token.value().expose()))))
    }

    /// Returns the extended deadline of a request while a user logs in, if one does. The login does not
    /// count as the server's time.
    pub(crate) fn more_time(&self, span: Duration) -> Option<Instant> {
        self.settings.http.tokens.as_ref()?.more_time(span)
    }

    /// Returns the headers that every HTTP request has.
    pub(crate) fn base_headers(&self) -> HeaderMap {
        let mut headers = self.settings.headers.clone();
        // Reserves space for the headers of a call, to allocate only once.
        headers.reserve(USUAL_HEADERS);
        headers
    }
}

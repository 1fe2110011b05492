//! Connector of the HTTP client: opens TCP connections or proxy tunnels, adds TLS and applies the
//! connect timeout.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderValue, Uri};
use tower_service::Service;

use super::{
    dialer::{Dialer, Proxies},
    tls::{Connection, Tls},
};
use crate::client::{
    error::{TransportError, TransportErrorKind},
    http_options::HttpOptions,
};

/// Opens connections for the HTTP client.
#[derive(Clone)]
pub(super) struct Connector {
    dialer: Dialer,
    tls: Tls,
    timeout: Duration,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("dialer", &self.dialer).finish_non_exhaustive()
    }
}

impl Connector {
    pub(super) fn new(options: &HttpOptions, tls: bool) -> Result<Self, TransportError> {
        Self::with_proxies(options, tls, Proxies::from_env())
    }

    pub(super) fn with_proxies(
        options: &HttpOptions,
        tls: bool,
        proxies: Proxies,
    ) -> Result<Self, TransportError> {
        Ok(Self {
            dialer: Dialer::new(options, proxies),
            tls: Tls::new(tls, options.ca_file.as_deref())?,
            timeout: options.connect_timeout,
        })
    }

    /// Returns the `Proxy-Authorization` header of a request that a proxy forwards.
    pub(super) fn forward_authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        self.dialer.forward_authorization(uri)
    }
}

impl Service<Uri> for Connector {
    type Response = Connection;
    type Error = TransportError;
    type Future = Pin<Box<dyn Future<Output = Result<Connection, TransportError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let Self { dialer, tls, timeout } = self.clone();
        Box::pin(async move {
            match tokio::time::timeout(timeout, tls.connect(dialer, uri)).await {
                Ok(connected) => connected,
                Err(late) => Err(TransportError::unsent(TransportErrorKind::Connect).because(late)),
            }
        })
    }
}

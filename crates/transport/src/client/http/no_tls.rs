//! Connections without the feature `tls`: `http:` only.

use std::path::Path;

use http::Uri;

use super::{dialer::Dialer, stream::Stream};
use crate::client::error::{TransportError, TransportErrorKind};

/// A plain TCP connection.
pub(super) type Connection = Stream;

/// Placeholder for the TLS settings.
#[derive(Clone)]
pub(super) struct Tls;

impl Tls {
    pub(super) fn new(tls: bool, _: Option<&Path>) -> Result<Self, TransportError> {
        if tls {
            return Err(TransportError::unsent(TransportErrorKind::Address(
                "https: requires the feature `tls` of the crate `outlive`; enable it".to_owned(),
            )));
        }
        Ok(Self)
    }

    pub(super) async fn connect(
        self,
        dialer: Dialer,
        uri: Uri,
    ) -> Result<Connection, TransportError> {
        dialer.connect(uri).await
    }
}

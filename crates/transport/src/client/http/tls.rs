//! TLS for `https:`: rustls with the certificate verifier of the platform.

use std::{fs, path::Path, sync::Arc};

use http::Uri;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio_rustls::rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use tower_service::Service;

use super::{dialer::Dialer, stream::Stream};
use crate::client::error::{TransportError, TransportErrorKind};

/// A connection, with TLS for `https:`.
pub(super) type Connection = MaybeHttpsStream<Stream>;

/// TLS settings of a client. `None` if the client uses `http:` only.
#[derive(Clone)]
pub(super) struct Tls(Option<Arc<ClientConfig>>);

impl Tls {
    pub(super) fn new(tls: bool, ca_file: Option<&Path>) -> Result<Self, TransportError> {
        if !tls {
            return Ok(Self(None));
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| tls_error(error.to_string()))?;
        // Other programs also read the root certificates from `SSL_CERT_FILE`.
        let named = ca_file.map(Path::to_owned);
        let named = named.or_else(|| std::env::var_os("SSL_CERT_FILE").map(Into::into));
        let config = match named {
            Some(file) => config.with_root_certificates(read_roots(&file)?),
            None => {
                config.with_platform_verifier().map_err(|error| tls_error(error.to_string()))?
            }
        };
        Ok(Self(Some(Arc::new(config.with_no_client_auth()))))
    }

    pub(super) async fn connect(
        self,
        mut dialer: Dialer,
        uri: Uri,
    ) -> Result<Connection, TransportError> {
        let Some(config) = self.0 else {
            return dialer.call(uri).await.map(MaybeHttpsStream::Http);
        };
        let connected = HttpsConnector::from((dialer, config)).call(uri).await;
        connected.map_err(|error| match error.downcast::<TransportError>() {
            Ok(failed) => *failed,
            Err(error) => tls_error(error.to_string()),
        })
    }
}

fn read_roots(file: &Path) -> Result<RootCertStore, TransportError> {
    let text = fs::read(file)
        .map_err(|error| tls_error(format!("`{}` cannot be read: {error}", file.display())))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&text).flatten());
    match roots.is_empty() {
        true => Err(tls_error(format!("`{}` has no certificates", file.display()))),
        false => Ok(roots),
    }
}

fn tls_error(reason: String) -> TransportError {
    TransportError::unsent(TransportErrorKind::Tls).because(reason)
}

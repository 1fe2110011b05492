//! TLS for `https:`: rustls, and the certificates that the system trusts.

use std::{fmt, fs, path::Path, sync::Arc};

use tokio::net::TcpStream;
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    },
};

use super::{TransportError, TransportErrorKind, http::Address};

/// Where systems keep the roots that they trust.
const BUNDLES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

/// What `https:` connections to one host need.
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tls {
    pub(super) fn new(address: &Address, roots: Option<&Path>) -> Result<Self, TransportError> {
        let host = address.host().trim_matches(['[', ']']).to_owned();
        let name = ServerName::try_from(host).map_err(|error| broken(error.to_string()))?;
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(error.to_string()))?
            .with_root_certificates(read_roots(roots)?)
            .with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    pub(super) async fn connect(
        &self,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, TransportError> {
        let connected = self.connector.connect(self.name.clone(), stream).await;
        connected.map_err(|error| broken(error.to_string()))
    }
}

fn read_roots(file: Option<&Path>) -> Result<RootCertStore, TransportError> {
    // As other programs have it: the variable names the bundle of this system.
    let named =
        file.map(Path::to_owned).or_else(|| std::env::var_os("SSL_CERT_FILE").map(Into::into));
    let text = match &named {
        Some(path) => fs::read(path)
            .map_err(|error| broken(format!("`{}` cannot be read: {error}", path.display())))?,
        None => BUNDLES.iter().find_map(|path| fs::read(path).ok()).ok_or_else(|| {
            broken("this system's root certificates were not found; name a PEM file".to_owned())
        })?,
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&text).flatten());
    match roots.is_empty() {
        true => Err(broken("the file of root certificates holds none".to_owned())),
        false => Ok(roots),
    }
}

fn broken(why: String) -> TransportError {
    TransportError::unsent(TransportErrorKind::Tls).because(why)
}

//! Settings of an OAuth client.

use std::{path::PathBuf, sync::Arc};

use outlive_protocol::Clock;
use outlive_transport::client::SecretString;

use super::{grant::Grant, login::DynLogin, scopes::Scopes, store::CredentialStore};
use crate::{fetch::NetworkPolicy, jose::SigningKey};

/// Settings of an OAuth client.
pub(super) struct Settings {
    pub(super) server: String,
    pub(super) name: String,
    pub(super) client: Option<Configured>,
    pub(super) document: Option<String>,
    pub(super) document_key: Option<Arc<SigningKey>>,
    pub(super) issuer: Option<String>,
    pub(super) scopes: Scopes,
    pub(super) grant: Grant,
    pub(super) login: Option<Arc<dyn DynLogin>>,
    pub(super) store: Arc<dyn CredentialStore>,
    pub(super) dpop: bool,
    /// Whether a request without a token fails instead of being sent.
    pub(super) token_required: bool,
    pub(super) network_policy: Option<NetworkPolicy>,
    pub(super) plain_http: bool,
    pub(super) ca_file: Option<PathBuf>,
    pub(super) clock: Arc<dyn Clock>,
}

/// A client that was registered in advance.
#[derive(Clone)]
pub(super) struct Configured {
    pub(super) id: String,
    pub(super) secret: Option<SecretString>,
    pub(super) key: Option<Arc<SigningKey>>,
}

//! State of a proxy: its settings, keys, stores and provider.

use std::{sync::Arc, time::Duration};

use outlive_auth::server::ResourceUri;
use outlive_protocol::Clock;

use super::{
    browser::Cookies, client_document::Documents, connections::Connections, identity::UserRule,
    keys::Keys, login_store::LoginStore, params::Params, provider_client::ProviderClient,
    reply::ErrorReply, scopes::ScopeRules, time::seconds,
};

/// State that all requests share.
pub(super) struct ProxyState {
    pub(super) issuer: String,
    /// Scheme, host and port of the issuer.
    pub(super) origin: String,
    /// Path of the issuer, which is the prefix of its endpoints.
    pub(super) base: String,
    pub(super) resource: ResourceUri,
    /// Name of the server on the consent page.
    pub(super) name: String,
    pub(super) scopes: ScopeRules,
    pub(super) keys: Keys,
    pub(super) cookies: Cookies,
    pub(super) logins: Arc<dyn LoginStore>,
    pub(super) provider: ProviderClient,
    pub(super) documents: Documents,
    pub(super) allow_user: Option<UserRule>,
    /// Other servers at which users log in.
    pub(super) connections: Option<Arc<dyn Connections>>,
    pub(super) spans: Spans,
    pub(super) max_body_bytes: usize,
    pub(super) clock: Arc<dyn Clock>,
}

/// Lifetimes of tokens, logins and consents.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    pub(super) access: Duration,
    /// Time after which an unused grant expires.
    pub(super) refresh: Duration,
    pub(super) login: Duration,
    pub(super) consent: Duration,
}

impl ProxyState {
    pub(super) fn callback(&self) -> String {
        format!("{}/callback", self.issuer)
    }

    /// Checks that a token is requested for the server of this proxy (RFC 8707).
    pub(super) fn check_resource(&self, params: &Params) -> Result<(), ErrorReply> {
        match params.all("resource").all(|resource| self.resource.is_named_by(resource)) {
            true => Ok(()),
            false => Err(ErrorReply::new(
                "invalid_target",
                "tokens for this resource are not issued by this server",
            )),
        }
    }

    /// Returns the time in Unix seconds.
    pub(super) fn now(&self) -> i64 {
        seconds(&*self.clock)
    }

    /// Returns the time `span` from now in Unix seconds.
    pub(super) fn after(&self, span: Duration) -> i64 {
        self.now().saturating_add(i64::try_from(span.as_secs()).unwrap_or(i64::MAX))
    }
}

//! The state of a proxy: its settings, its keys, its stores, and the provider behind it.

use std::{sync::Arc, time::Duration};

use outlive_auth::server::ResourceUri;
use outlive_protocol::Clock;

use super::{
    browser::Cookies, client_document::Documents, identity::UserRule, keys::Keys,
    login_store::LoginStore, params::Params, provider_client::ProviderClient, reply::Fault,
    scopes::ScopeRules, time::seconds,
};

/// State that all requests share.
pub(super) struct ProxyState {
    pub(super) issuer: String,
    /// Scheme, host and port of the issuer.
    pub(super) origin: String,
    /// The path of the issuer, before those of its pages.
    pub(super) base: String,
    pub(super) resource: ResourceUri,
    /// What the server is called on the page that asks for consent.
    pub(super) name: String,
    pub(super) scopes: ScopeRules,
    pub(super) keys: Keys,
    pub(super) cookies: Cookies,
    pub(super) logins: Arc<dyn LoginStore>,
    pub(super) provider: ProviderClient,
    pub(super) documents: Documents,
    pub(super) allow_user: Option<UserRule>,
    pub(super) spans: Spans,
    pub(super) max_body_bytes: usize,
    pub(super) clock: Arc<dyn Clock>,
}

/// How long tokens, logins and consents are valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    pub(super) access: Duration,
    /// A grant that is not used for so long is over.
    pub(super) refresh: Duration,
    pub(super) login: Duration,
    pub(super) consent: Duration,
}

impl ProxyState {
    pub(super) fn callback(&self) -> String {
        format!("{}/callback", self.issuer)
    }

    /// Whether a token is wanted for the one server that there are tokens for (RFC 8707).
    pub(super) fn check_resource(&self, params: &Params) -> Result<(), Fault> {
        match params.all("resource").all(|resource| self.resource.is_named_by(resource)) {
            true => Ok(()),
            false => {
                Err(Fault::new("invalid_target", "there are no tokens for this resource here"))
            }
        }
    }

    /// Seconds since 1970.
    pub(super) fn now(&self) -> i64 {
        seconds(&*self.clock)
    }

    /// When a span from now on is over.
    pub(super) fn after(&self, span: Duration) -> i64 {
        self.now().saturating_add(i64::try_from(span.as_secs()).unwrap_or(i64::MAX))
    }
}

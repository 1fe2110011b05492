//! The token source of an upstream connection.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use outlive::{
    auth::{
        client::{Assertion, OAuth, OAuthBuilder, TokenExchange},
        server::Delegates,
    },
    people::Vault,
    server::{Principal, SealKeys},
    store::MemoryStore,
};

use super::entries::Entries;
use crate::{
    digest::digest_of,
    settings::{AuthKind, Endpoint, Exchange, ExchangeSubject, Upstream, UpstreamAuth},
    status::{Problem, State},
};

/// The tokens of the gateway and of its principals.
#[derive(Default)]
pub(crate) struct Credentials {
    vault: OnceLock<Vault>,
    subjects: Subjects,
}

/// Sources of the tokens and logins of principals.
#[derive(Default)]
pub(crate) struct Subjects {
    /// Access tokens of principals.
    pub(crate) delegates: Option<Delegates>,
    /// Tokens at the identity provider behind the server.
    pub(crate) provider: Option<Arc<ProviderTokens>>,
    /// Addresses of pages on which principals log in.
    pub(crate) connect_url: Option<Arc<ConnectUrl>>,
}

/// Returns the address of the page on which a principal logs in at an upstream.
pub(crate) type ConnectUrl = dyn Fn(&str, &Principal) -> Option<String> + Send + Sync;

/// Returns the token of a principal at an identity provider.
pub(crate) type ProviderTokens = dyn Fn(&Principal) -> Assertion + Send + Sync;

impl Credentials {
    pub(crate) fn new(subjects: Subjects) -> Self {
        Self { vault: OnceLock::new(), subjects }
    }

    /// Returns the access tokens of principals.
    pub(crate) fn delegates(&self) -> Option<&Delegates> {
        self.subjects.delegates.as_ref()
    }

    /// Sets the place of tokens and logins, unless it is set.
    pub(crate) fn set_vault(&self, vault: Vault) {
        let _ = self.vault.set(vault);
    }

    /// Returns the token source for an upstream connection of a principal, or of all.
    ///
    /// # Errors
    ///
    /// Returns the reason if the settings cannot be used.
    pub(crate) fn source(
        &self,
        upstream: &Upstream,
        auth: &UpstreamAuth,
        principal: Option<&str>,
    ) -> Result<OAuth, Problem> {
        let owner = match (auth.is_of_users(), principal) {
            (false, _) => None,
            (true, principal) => Some(named(principal)?),
        };
        let exchange = match (&auth.kind, &owner) {
            (AuthKind::Exchange(exchange), Some(owner)) => Some(self.exchange(exchange, owner)?),
            _ => None,
        };
        let mut builder = builder(upstream, auth, self.vault()?, owner)?.require_token(true);
        if let Some(exchange) = exchange {
            builder = builder.token_exchange(exchange);
        }
        Ok(builder.build())
    }

    /// Returns the OAuth client with which a principal logs in at an upstream.
    pub(crate) fn user_login(
        &self,
        upstream: &Upstream,
        auth: &UpstreamAuth,
        principal: &Principal,
    ) -> Result<OAuth, Problem> {
        let owner = named(Some(principal.key()))?;
        Ok(builder(upstream, auth, self.vault()?, Some(owner))?.build())
    }

    /// Returns the address of the page on which a principal logs in at an upstream.
    pub(crate) fn connect_url(&self, upstream: &str, principal: &Principal) -> Option<String> {
        (self.subjects.connect_url.as_ref()?)(upstream, principal)
    }

    /// Returns the exchange of a principal's token.
    fn exchange(&self, exchange: &Exchange, owner: &Principal) -> Result<TokenExchange, Problem> {
        let subject = match exchange.subject {
            ExchangeSubject::Principal => {
                self.subjects.delegates.as_ref().map(|delegates| delegates.subject(owner))
            }
            ExchangeSubject::Provider => {
                self.subjects.provider.as_ref().map(|provider| provider(owner))
            }
        };
        let subject = subject.ok_or_else(|| {
            let reason = "it needs tokens of users, and this server does not authenticate them";
            Problem::new(State::Misconfigured, reason, "serve over HTTP, with [auth]")
        })?;
        let mut made = TokenExchange::new(&exchange.token_url, subject);
        if let Some(audience) = &exchange.audience {
            made = made.audience(audience);
        }
        if let Some(resource) = &exchange.resource {
            made = made.resource(resource);
        }
        Ok(made)
    }

    /// Lets the next request of a principal, at any replica, exchange its token for the upstream.
    pub(crate) async fn request_token(&self, upstream: &str, principal: &str) {
        let Ok(vault) = self.vault() else { return };
        let key = request_key(upstream, principal);
        if let Err(error) = vault.put(&key, "", REQUEST_TTL, None).await {
            tracing::debug!(%error, "cannot request a token for a task");
        }
    }

    /// Returns whether a task waits for a token of a principal.
    pub(crate) async fn is_requested(&self, upstream: &str, principal: &str) -> bool {
        let Ok(vault) = self.vault() else { return false };
        matches!(vault.get(&request_key(upstream, principal)).await, Ok(Some(_)))
    }

    /// Ends the request of tasks for a token, because there is one.
    pub(crate) async fn end_request(&self, upstream: &str, principal: &str) {
        let Ok(vault) = self.vault() else { return };
        // It expires if it cannot be deleted.
        let _ = vault.delete(&request_key(upstream, principal)).await;
    }

    /// Returns the vault. Without one, tokens are in memory.
    fn vault(&self) -> Result<Vault, Problem> {
        if let Some(vault) = self.vault.get() {
            return Ok(vault.clone());
        }
        let keys = SealKeys::random().map_err(|error| {
            Problem::new(State::Misconfigured, error.to_string(), "restart the server")
        })?;
        let memory = || Vault::open(Arc::new(MemoryStore::new()), keys);
        Ok(self.vault.get_or_init(memory).clone())
    }
}

/// Time after which a request of a task for a token expires, unless the task repeats it.
const REQUEST_TTL: Duration = Duration::from_secs(180);

fn request_key(upstream: &str, principal: &str) -> String {
    format!("gateway/token-request/{upstream}/{}", digest_of([principal]))
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(…)")
    }
}

/// Returns the principal that owns a credential. A call without an authenticated principal has none.
fn named(principal: Option<&str>) -> Result<Principal, Problem> {
    let principal = principal.and_then(Principal::from_key);
    principal.filter(|principal| !principal.is_anonymous()).ok_or_else(|| {
        let reason = "it needs a token for each user, and the caller is not authenticated";
        Problem::new(State::NeedsLogin, reason, "send an access token").for_principal()
    })
}

impl Upstream {
    /// Returns the OAuth client of the gateway at this upstream, for programs that log in or out. Its
    /// tokens are in `vault`, which has the store and the keys of the server. Returns `None` if the
    /// gateway itself has no login at this upstream.
    ///
    /// # Panics
    ///
    /// Panics outside of a tokio runtime.
    pub fn login_client(&self, vault: Vault) -> Option<OAuthBuilder> {
        let auth = self.oauth().filter(|auth| auth.kind == AuthKind::Login)?;
        builder(self, auth, vault, None).ok()
    }
}

fn builder(
    upstream: &Upstream,
    auth: &UpstreamAuth,
    vault: Vault,
    owner: Option<Principal>,
) -> Result<OAuthBuilder, Problem> {
    let invalid = |reason: String| {
        Problem::new(State::Misconfigured, reason, "correct `auth` of the upstream")
    };
    let Endpoint::Url(url) = &upstream.endpoint else {
        return Err(invalid("`auth` needs a `url`".to_owned()));
    };
    let entries = Entries::new(vault, upstream, owner);
    let mut builder = OAuth::builder(url)
        .client_name("Outlive gateway")
        .scopes(&auth.scopes)
        .allow_http(upstream.allow_http)
        .store(entries);
    if let Some(id) = &auth.client_id {
        builder = builder.client_id(id);
    }
    if let Some(secret) = &auth.client_secret {
        builder = builder.client_secret(secret.clone());
    }
    if let Some(key) = auth.signing_key().map_err(invalid)? {
        builder = builder.client_key(key);
    }
    if let Some(file) = &upstream.ca_file {
        builder = builder.ca_file(file);
    }
    Ok(match auth.kind {
        AuthKind::Login | AuthKind::Exchange(_) | AuthKind::EachUser => builder,
        AuthKind::ClientCredentials => builder.client_credentials(),
    })
}

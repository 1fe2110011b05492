//! Builder of a proxy.

use std::{fmt, sync::Arc, time::Duration};

use outlive_protocol::{Clock, Scopes};
use outlive_transport::TokioClock;

use super::{
    browser::Cookies,
    client_document::Documents,
    connections::Connections,
    error::AuthProxyBuildError,
    identity::{Identity, UserRule},
    keys::Keys,
    login_store::{LoginStore, MemoryLoginStore},
    provider::Provider,
    provider_client::ProviderClient,
    proxy::AuthProxy,
    scopes::ScopeRules,
    state::{ProxyState, Spans},
};
use outlive_auth::{
    fetch::{Fetcher, NetworkPolicy, is_loopback_host},
    server::ResourceUri,
};

/// Builder of a proxy. The default of every limit is suitable for production.
#[must_use]
pub struct AuthProxyBuilder {
    resource: String,
    provider: Provider,
    issuer: Option<String>,
    name: Option<String>,
    scopes: Scopes,
    grants: Vec<(Scopes, UserRule)>,
    secret: Option<Vec<u8>>,
    previous: Vec<Vec<u8>>,
    login_store: Option<Arc<dyn LoginStore>>,
    max_logins: usize,
    allow_user: Option<UserRule>,
    connections: Option<Arc<dyn Connections>>,
    spans: Spans,
    max_body_bytes: usize,
    fetch: Fetcher,
    clock: Arc<dyn Clock>,
}

impl AuthProxy {
    /// Returns a builder of an authorization server for the MCP server at `resource`. The default
    /// issuer is the origin of `resource`; see [`AuthProxyBuilder::issuer`].
    pub fn builder(resource: impl Into<String>, provider: Provider) -> AuthProxyBuilder {
        let resource = resource.into();
        AuthProxyBuilder {
            resource,
            provider,
            issuer: None,
            name: None,
            scopes: Scopes::NONE,
            grants: Vec::new(),
            secret: None,
            previous: Vec::new(),
            login_store: None,
            max_logins: 100_000,
            allow_user: None,
            connections: None,
            spans: Spans {
                access: Duration::from_secs(10 * 60),
                refresh: Duration::from_secs(30 * 86_400),
                login: Duration::from_secs(10 * 60),
                consent: Duration::from_secs(30 * 86_400),
            },
            max_body_bytes: 16 << 10,
            fetch: Fetcher::new().network_policy(NetworkPolicy::Local),
            clock: Arc::new(TokioClock::new()),
        }
    }
}

impl AuthProxyBuilder {
    /// Sets the issuer. The endpoints and pages of the proxy are below this URL.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets the name of the server on the consent page. The default is its host.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the base scopes, which every permitted user gets if the client requests them. A client
    /// that requests no scopes gets all of them. [`AuthProxyBuilder::grants`] adds scopes for some
    /// users.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Scopes::of(scopes);
        self
    }

    /// Grants scopes to the users for whom `rule` returns `true`. Each call adds a rule.
    ///
    /// A scope that is neither a base scope nor granted by a rule is never issued. The token
    /// response then lists the scopes that were granted. The rule is evaluated at login, not while
    /// the user stays logged in.
    ///
    /// ```
    /// # use outlive_auth_proxy::{AuthProxy, Provider};
    /// # let provider = Provider::discover("https://id.example.com", "client-id");
    /// let proxy = AuthProxy::builder("https://mcp.example.com/mcp", provider)
    ///     .scopes(["mcp"])
    ///     .grants(["shop:operate"], |user| user.has("groups", ["ops", "admins"]))
    ///     .build()?;
    /// # Ok::<(), outlive_auth_proxy::AuthProxyBuildError>(())
    /// ```
    pub fn grants<S: AsRef<str>>(
        mut self,
        scopes: impl IntoIterator<Item = S>,
        rule: impl Fn(&Identity) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.grants.push((Scopes::of(scopes), Arc::new(rule)));
        self
    }

    /// Sets the secret from which the seal and signing keys are derived: at least 32 random bytes,
    /// the same for all replicas. By default, each process generates a random secret.
    pub fn secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Adds a previous secret. Data that was sealed or signed with it stays valid.
    pub fn previous_secret(mut self, secret: impl Into<Vec<u8>>) -> Self {
        self.previous.push(secret.into());
        self
    }

    /// Sets the store of logins. The default is in memory.
    pub fn login_store(mut self, store: impl LoginStore) -> Self {
        self.login_store = Some(Arc::new(store));
        self
    }

    /// Sets the maximum number of entries of the store in memory. A login has about three.
    pub fn max_logins(mut self, max: usize) -> Self {
        self.max_logins = max;
        self
    }

    /// Sets the rule that decides which users may log in. By default, every user of the provider
    /// may, which for some providers is every internet user.
    ///
    /// The rule is evaluated at login, not while the user stays logged in.
    pub fn allow_user(mut self, rule: impl Fn(&Identity) -> bool + Send + Sync + 'static) -> Self {
        self.allow_user = Some(Arc::new(rule));
        self
    }

    /// Sets other servers at which each user logs in, on pages below `connect/` of the issuer.
    pub fn connections(mut self, connections: impl Connections) -> Self {
        self.connections = Some(Arc::new(connections));
        self
    }

    /// Sets the lifetime of an access token. It cannot be revoked, so the lifetime should be short.
    pub fn access_lifetime(mut self, span: Duration) -> Self {
        self.spans.access = span;
        self
    }

    /// Sets the time after which an unused refresh token expires.
    pub fn refresh_lifetime(mut self, span: Duration) -> Self {
        self.spans.refresh = span;
        self
    }

    /// Sets how long a user may take to log in.
    pub fn login_lifetime(mut self, span: Duration) -> Self {
        self.spans.login = span;
        self
    }

    /// Sets how long a browser remembers a consent. Zero disables this. Programs on the user's
    /// machine always require a new consent.
    pub fn consent_lifetime(mut self, span: Duration) -> Self {
        self.spans.consent = span;
        self
    }

    /// Sets the maximum bytes of a request body.
    pub fn max_body_bytes(mut self, bytes: usize) -> Self {
        self.max_body_bytes = bytes;
        self
    }

    /// Sets the fetcher for the provider. The default uses TLS and allows public and private
    /// addresses.
    pub fn fetch(mut self, fetch: Fetcher) -> Self {
        self.fetch = fetch;
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the proxy.
    ///
    /// # Errors
    ///
    /// Returns an error if a URL or the secret is invalid.
    pub fn build(self) -> Result<AuthProxy, AuthProxyBuildError> {
        let resource = uri(&self.resource)?;
        let issuer = uri(self.issuer.as_deref().unwrap_or(resource.origin()))?;
        let base = issuer.path().trim_end_matches('/').to_owned();
        let origin = issuer.origin().to_owned();
        let is_tls = origin.starts_with("https:");
        let keys = match (&self.secret, &self.login_store) {
            (Some(secret), _) => Keys::new(secret, &self.previous)?,
            (None, Some(_)) => return Err(AuthProxyBuildError::NoSecret),
            (None, None) => Keys::new(&Keys::random_secret()?, &self.previous)?,
        };
        let provider = ProviderClient::new(self.provider, self.fetch, Arc::clone(&self.clock));
        provider.check().map_err(AuthProxyBuildError::Provider)?;
        let clock = &self.clock;
        let memory = || Arc::new(MemoryLoginStore::with_clock(self.max_logins, Arc::clone(clock)));
        Ok(AuthProxy(Arc::new(ProxyState {
            issuer: format!("{origin}{base}"),
            name: self.name.unwrap_or_else(|| host(resource.origin()).to_owned()),
            origin,
            base,
            resource,
            scopes: ScopeRules::new(self.scopes, self.grants),
            keys,
            cookies: Cookies { is_tls },
            logins: self.login_store.unwrap_or_else(|| memory()),
            provider,
            documents: Documents::new(!is_tls, Arc::clone(clock)),
            allow_user: self.allow_user,
            connections: self.connections,
            spans: self.spans,
            max_body_bytes: self.max_body_bytes,
            clock: Arc::clone(clock),
        })))
    }
}

/// Parses the URL of a server. Requires TLS except for loopback, because cookies and codes are sent
/// there.
fn uri(text: &str) -> Result<ResourceUri, AuthProxyBuildError> {
    let bad = |why| AuthProxyBuildError::Uri { uri: text.to_owned(), why };
    let uri = ResourceUri::parse(text).map_err(bad)?;
    let is_safe = uri.origin().starts_with("https:") || is_loopback_host(host(uri.origin()));
    if is_safe { Ok(uri) } else { Err(bad("it must use `https:`, except for loopback addresses")) }
}

/// Returns the host of an origin without its port.
fn host(origin: &str) -> &str {
    let authority = origin.split_once("://").map_or(origin, |(_, authority)| authority);
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
        _ => authority,
    }
}

// A test compares this list of settings with `docs/limits.md`.
impl fmt::Debug for AuthProxyBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource: _,
            provider: _,
            issuer,
            name,
            scopes,
            grants,
            secret: _,
            previous: _,
            login_store: _,
            max_logins,
            allow_user,
            connections,
            spans: Spans { access, refresh, login, consent },
            max_body_bytes,
            fetch: _,
            clock: _,
        } = self;
        f.debug_struct("AuthProxyBuilder")
            .field("issuer", issuer)
            .field("name", name)
            .field("scopes", &format_args!("{scopes}"))
            .field("grants", &!grants.is_empty())
            .field("secret", &format_args!("…"))
            .field("previous_secret", &format_args!("…"))
            .field("login_store", &format_args!("…"))
            .field("max_logins", max_logins)
            .field("allow_user", &allow_user.is_some())
            .field("connections", &connections.is_some())
            .field("access_lifetime", access)
            .field("refresh_lifetime", refresh)
            .field("login_lifetime", login)
            .field("consent_lifetime", consent)
            .field("max_body_bytes", max_body_bytes)
            .field("fetch", &format_args!("…"))
            .field("clock", &format_args!("…"))
            .finish()
    }
}

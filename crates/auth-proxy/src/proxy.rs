//! The authorization server: its paths, and what all of them share.

use std::{
    fmt,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use outlive_protocol::Clock;
use outlive_transport::http::{Answering, Routes};

use super::{
    authorize,
    browser::Cookies,
    builder::AuthProxyBuilder,
    callback,
    client_document::Documents,
    consent,
    identity::Identity,
    keys::Keys,
    login_store::LoginStore,
    metadata,
    params::Params,
    provider::Provider,
    register,
    reply::{self, Fault, Reply},
    revoke,
    scopes::ScopeRules,
    token,
    upstream::Upstream,
};
use outlive_auth::server::{Issuer, ResourceUri};

/// An authorization server in front of an identity provider. A clone is the same server.
///
/// It is [`Routes`]: give it to `HttpConfig::routes`, and [`AuthProxy::issuer`] to the
/// [`ResourceServer`](outlive_auth::server::ResourceServer) that takes its tokens.
///
/// ```
/// use outlive_auth::server::ResourceServer;
/// use outlive_auth_proxy::{AuthProxy, Upstream};
///
/// let url = "https://mcp.example.com/mcp";
/// let upstream = Upstream::discover("https://accounts.google.com", "client-id").client_secret("…");
/// let proxy = AuthProxy::builder(url, upstream)
///     .scopes(["mcp"])
///     .allow_user(|user| user.has("hd", ["example.com"]))
///     .grants(["files:write"], |user| user.has("groups", ["editors"]))
///     .build()?;
/// let auth = ResourceServer::builder(url).issuer(proxy.issuer()).scopes(["mcp"]).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AuthProxy(pub(super) Arc<ProxyState>);

/// A rule about users: who may log in, or who gets a scope.
pub(super) type Admit = Arc<dyn Fn(&Identity) -> bool + Send + Sync>;

/// All that requests share.
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
    pub(super) provider: Provider,
    pub(super) documents: Documents,
    pub(super) allow_user: Option<Admit>,
    pub(super) spans: Spans,
    pub(super) max_body_bytes: usize,
    pub(super) clock: Arc<dyn Clock>,
}

/// How long what is good for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spans {
    pub(super) access: Duration,
    /// A grant that is not used for so long is over.
    pub(super) refresh: Duration,
    pub(super) login: Duration,
    pub(super) consent: Duration,
}

/// What is at a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Metadata,
    Keys,
    Register,
    Authorize,
    Consent,
    Callback,
    Token,
    Revoke,
}

impl AuthProxy {
    /// An authorization server for the server that clients connect to at `resource`. Its own name is
    /// that URI's origin, unless [`AuthProxyBuilder::issuer`] says otherwise.
    pub fn builder(resource: impl Into<String>, upstream: Upstream) -> AuthProxyBuilder {
        AuthProxyBuilder::new(resource.into(), upstream)
    }

    /// The issuer of its tokens, for the resource server. The keys are known: nobody is asked for them.
    pub fn issuer(&self) -> Issuer {
        let office = &self.0;
        let issuer = Issuer::new(&office.issuer).keys(office.keys.published.clone());
        match office.provider.upstream.tenant {
            Some(_) => issuer.require_at_jwt().tenant_claim("tenant"),
            None => issuer.require_at_jwt(),
        }
    }

    /// The redirect URI to register with the provider.
    pub fn callback(&self) -> String {
        self.0.callback()
    }
}

impl Routes for AuthProxy {
    fn matches(&self, path: &str) -> Option<usize> {
        self.0.page(path).map(|_| self.0.max_body_bytes)
    }

    fn respond(&self, request: Request<Bytes>) -> Answering<'_> {
        Box::pin(async move {
            match self.0.page(request.uri().path()) {
                Some(page) => page.answer(&self.0, &request).await,
                None => reply::empty(StatusCode::NOT_FOUND),
            }
        })
    }
}

impl Page {
    async fn answer(self, office: &Arc<ProxyState>, request: &Request<Bytes>) -> Reply {
        let method = match self {
            Self::Register | Self::Consent | Self::Token | Self::Revoke => Method::POST,
            Self::Metadata | Self::Keys | Self::Authorize | Self::Callback => Method::GET,
        };
        // What goes by cookies is for browsers that are here; the rest for programs, also in web pages.
        let is_for_browsers = matches!(self, Self::Authorize | Self::Consent | Self::Callback);
        if *request.method() == Method::OPTIONS && !is_for_browsers {
            return reply::for_any_origin(reply::preflight());
        }
        if *request.method() != method {
            return reply::method_not_allowed(&method);
        }
        let reply = match self {
            Self::Metadata => {
                reply::document(metadata::document(&office.issuer, office.scopes.offered()))
            }
            Self::Keys => reply::document(office.keys.published.to_json().into()),
            Self::Register => register::register(office, request),
            Self::Authorize => authorize::authorize(office, request).await,
            Self::Consent => consent::answer(office, request).await,
            Self::Callback => callback::callback(office, request).await,
            Self::Token => token::token(office, request).await,
            Self::Revoke => revoke::revoke(office, request).await,
        };
        if is_for_browsers { reply } else { reply::for_any_origin(reply) }
    }
}

impl ProxyState {
    fn page(&self, path: &str) -> Option<Page> {
        if path.strip_prefix(metadata::WELL_KNOWN) == Some(&self.base) {
            return Some(Page::Metadata);
        }
        match path.strip_prefix(self.base.as_str())? {
            "/jwks" => Some(Page::Keys),
            "/register" => Some(Page::Register),
            "/authorize" => Some(Page::Authorize),
            "/consent" => Some(Page::Consent),
            "/callback" => Some(Page::Callback),
            "/token" => Some(Page::Token),
            "/revoke" => Some(Page::Revoke),
            _ => None,
        }
    }

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

/// Seconds since 1970.
pub(super) fn seconds(clock: &dyn Clock) -> i64 {
    let since = clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl fmt::Debug for AuthProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthProxy")
            .field("issuer", &self.0.issuer)
            .field("resource", &self.0.resource)
            .field("upstream", &self.0.provider.upstream)
            .finish_non_exhaustive()
    }
}

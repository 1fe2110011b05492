//! The authorization server: its endpoints.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use outlive_auth::server::Issuer;
use outlive_protocol::Principal;
use outlive_transport::{
    client::SecretString,
    http::{ResponseFuture, RouteBody, Routes},
};

use super::{
    authorize, callback, connect, consent,
    error::ProviderTokenError,
    metadata, provider_token, register,
    reply::{self, Reply},
    revoke,
    state::ProxyState,
    token,
};

/// An authorization server in front of an identity provider. Clones share their state.
///
/// It implements [`Routes`]: pass it to `HttpConfig::routes`, and pass [`AuthProxy::issuer`] to the
/// [`ResourceServer`](outlive_auth::server::ResourceServer) that accepts its tokens.
///
/// ```
/// use outlive_auth::server::ResourceServer;
/// use outlive_auth_proxy::{AuthProxy, Provider};
///
/// let url = "https://mcp.example.com/mcp";
/// let provider = Provider::discover("https://accounts.google.com", "client-id").client_secret("…");
/// let proxy = AuthProxy::builder(url, provider)
///     .scopes(["mcp"])
///     .allow_user(|user| user.has("hd", ["example.com"]))
///     .grants(["files:write"], |user| user.has("groups", ["editors"]))
///     .build()?;
/// let auth = ResourceServer::builder(url).issuer(proxy.issuer()).scopes(["mcp"]).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AuthProxy(pub(super) Arc<ProxyState>);

/// Endpoint of the proxy.
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
    /// Page for a login at another server, and its callback.
    Connect,
}

impl AuthProxy {
    /// Returns the issuer of its tokens, for the resource server. The keys are included, so they
    /// are never fetched.
    pub fn issuer(&self) -> Issuer {
        let proxy = &self.0;
        let issuer = Issuer::new(&proxy.issuer).keys(proxy.keys.published.clone());
        match proxy.provider.settings.tenant {
            Some(_) => issuer.require_at_jwt().tenant_claim("tenant"),
            None => issuer.require_at_jwt(),
        }
    }

    /// Returns the redirect URI to register with the provider.
    pub fn callback(&self) -> String {
        self.0.callback()
    }

    /// Returns the provider's token of a principal, to call the provider on behalf of the user.
    ///
    /// The token has all scopes of [`Provider::scopes`](super::Provider::scopes). Do not store it
    /// or pass it on: not in a result, a log, a journal or a task.
    ///
    /// # Errors
    ///
    /// Returns an error if the user is not logged in, or if the provider or the login store is
    /// unavailable.
    pub async fn provider_token(
        &self,
        caller: &Principal,
    ) -> Result<SecretString, ProviderTokenError> {
        provider_token::get(&self.0, caller).await
    }

    /// Returns the address of the page on which a principal logs in at another server. Returns `None`
    /// if users cannot log in at a server with this name, or if the principal has no person.
    ///
    /// The address is valid for an hour, and only for the person behind the principal, who signs in
    /// before the page is shown.
    pub fn connect_url(&self, name: &str, caller: &Principal) -> Option<String> {
        connect::address(&self.0, name, caller)
    }
}

impl Routes for AuthProxy {
    fn matches(&self, path: &str) -> Option<usize> {
        Page::at(&self.0, path).map(|_| self.0.max_body_bytes)
    }

    fn respond(&self, request: Request<Bytes>) -> ResponseFuture<'_> {
        Box::pin(async move {
            let reply = match Page::at(&self.0, request.uri().path()) {
                Some(page) => page.respond(&self.0, &request).await,
                None => reply::empty(StatusCode::NOT_FOUND),
            };
            reply.map(RouteBody::from)
        })
    }
}

impl Page {
    /// Returns the endpoint at `path`.
    fn at(proxy: &ProxyState, path: &str) -> Option<Self> {
        let base = proxy.base.as_str();
        if path.strip_prefix(metadata::WELL_KNOWN) == Some(base) {
            return Some(Self::Metadata);
        }
        match path.strip_prefix(base)? {
            "/jwks" => Some(Self::Keys),
            "/register" => Some(Self::Register),
            "/authorize" => Some(Self::Authorize),
            "/consent" => Some(Self::Consent),
            "/callback" => Some(Self::Callback),
            "/token" => Some(Self::Token),
            "/revoke" => Some(Self::Revoke),
            path if proxy.connections.is_some() => connect::parse_path(path).map(|_| Self::Connect),
            _ => None,
        }
    }

    async fn respond(self, proxy: &Arc<ProxyState>, request: &Request<Bytes>) -> Reply {
        let method = match self {
            Self::Register | Self::Consent | Self::Token | Self::Revoke => Method::POST,
            Self::Connect if *request.method() == Method::POST => Method::POST,
            Self::Metadata | Self::Keys | Self::Authorize | Self::Callback | Self::Connect => {
                Method::GET
            }
        };
        // Endpoints that use cookies are for same-origin pages; the others are for programs and web
        // pages of any origin.
        let is_for_browsers =
            matches!(self, Self::Authorize | Self::Consent | Self::Callback | Self::Connect);
        if *request.method() == Method::OPTIONS && !is_for_browsers {
            return reply::for_any_origin(reply::preflight());
        }
        if *request.method() != method {
            return reply::method_not_allowed(&method);
        }
        let reply = match self {
            Self::Metadata => {
                reply::document(metadata::document(&proxy.issuer, proxy.scopes.offered()))
            }
            Self::Keys => reply::document(proxy.keys.published.to_json().into()),
            Self::Register => register::register(proxy, request),
            Self::Authorize => authorize::authorize(proxy, request).await,
            Self::Consent => consent::respond(proxy, request).await,
            Self::Callback => callback::callback(proxy, request).await,
            Self::Token => token::token(proxy, request).await,
            Self::Revoke => revoke::revoke(proxy, request).await,
            Self::Connect => connect::respond(proxy, request).await,
        };
        if is_for_browsers { reply } else { reply::for_any_origin(reply) }
    }
}

impl fmt::Debug for AuthProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthProxy")
            .field("issuer", &self.0.issuer)
            .field("resource", &self.0.resource)
            .field("provider", &self.0.provider.settings)
            .finish_non_exhaustive()
    }
}

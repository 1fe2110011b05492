//! Identity provider behind the proxy, and the proxy's client registration there.

use std::fmt;

use outlive_transport::client::SecretString;

/// An identity provider: GitHub, Google, Entra, or another provider with OAuth 2 or OpenID Connect.
///
/// Register one client at the provider, with [`AuthProxy::callback`](super::AuthProxy::callback) as
/// its only redirect URI.
///
/// ```
/// use outlive_auth_proxy::Provider;
///
/// let google = Provider::discover("https://accounts.google.com", "client-id")
///     .client_secret("…")
///     .scopes(["openid", "email"])
///     .parameter("access_type", "offline");
/// let github = Provider::new(
///     "https://github.com/login/oauth/authorize",
///     "https://github.com/login/oauth/access_token",
///     "client-id",
/// )
/// .client_secret("…")
/// .userinfo_url("https://api.github.com/user")
/// .subject("id");
/// ```
#[derive(Clone)]
#[must_use]
pub struct Provider {
    pub(super) place: Place,
    pub(super) client_id: String,
    pub(super) secret: Option<SecretString>,
    pub(super) userinfo: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) subject: String,
    pub(super) tenant: Option<String>,
    pub(super) parameters: Vec<(String, String)>,
}

/// Endpoints of a provider.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Endpoints from the metadata of the issuer.
    Issuer(String),
    /// Configured endpoints.
    Known { authorize: String, token: String, revoke: Option<String> },
}

impl Provider {
    /// Creates a provider with published metadata and ID tokens.
    pub fn discover(issuer: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self::with_place(Place::Issuer(issuer.into()), client_id.into(), vec!["openid".to_owned()])
    }

    /// Creates a provider from its authorization endpoint and its token endpoint.
    pub fn new(
        authorize: impl Into<String>,
        token: impl Into<String>,
        client_id: impl Into<String>,
    ) -> Self {
        let (authorize, token) = (authorize.into(), token.into());
        Self::with_place(
            Place::Known { authorize, token, revoke: None },
            client_id.into(),
            Vec::new(),
        )
    }

    fn with_place(place: Place, client_id: String, scopes: Vec<String>) -> Self {
        Self {
            place,
            client_id,
            secret: None,
            userinfo: None,
            scopes,
            subject: "sub".to_owned(),
            tenant: None,
            parameters: Vec::new(),
        }
    }

    /// Sets the client secret. Without it, the client is public.
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the URL of the user data, which the proxy requests with the provider's token. The
    /// default is the ID token.
    pub fn userinfo_url(mut self, url: impl Into<String>) -> Self {
        self.userinfo = Some(url.into());
        self
    }

    /// Sets the URL that revokes the provider's tokens (RFC 7009). Only for a provider without
    /// metadata.
    pub fn revocation_url(mut self, url: impl Into<String>) -> Self {
        if let Place::Known { revoke, .. } = &mut self.place {
            *revoke = Some(url.into());
        }
        self
    }

    /// Sets the scopes for the provider. They are the same for all users, whatever scopes a client
    /// of the proxy requests.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the claim, or the member of the user data, with the ID of the user. The default is
    /// `sub`. The value must never be reassigned: no e-mail address and no name that can change.
    pub fn subject(mut self, claim: impl Into<String>) -> Self {
        self.subject = claim.into();
        self
    }

    /// Sets the claim with the tenant of the user. A user without a tenant is rejected.
    pub fn tenant(mut self, claim: impl Into<String>) -> Self {
        self.tenant = Some(claim.into());
        self
    }

    /// Adds a parameter to the URL of the login page.
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider")
            .field("place", &self.place)
            .field("client_id", &self.client_id)
            .finish_non_exhaustive()
    }
}

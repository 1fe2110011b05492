//! The identity provider behind the proxy, and the one client that it knows us as.

use std::fmt;

use outlive_transport::client::SecretString;

/// An identity provider: GitHub, Google, Entra, or any other that speaks OAuth 2 or OpenID Connect.
///
/// Register one client there by hand, with [`AuthProxy::callback`](super::AuthProxy::callback) as its only
/// redirect URI.
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

/// Where a provider is.
#[derive(Clone, Debug)]
pub(super) enum Place {
    /// Where its metadata says.
    Issuer(String),
    /// Here.
    Known { authorize: String, token: String, revoke: Option<String> },
}

impl Provider {
    /// Creates a provider that publishes its metadata and names the user in an ID token.
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

    /// The secret of the client. Without one it is a public client.
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.secret = Some(secret.into());
        self
    }

    /// Sets the URL that names the user, asked with the provider's token. The default is the ID token.
    pub fn userinfo_url(mut self, url: impl Into<String>) -> Self {
        self.userinfo = Some(url.into());
        self
    }

    /// Sets the URL that revokes the provider's tokens (RFC 7009). A provider with metadata names it there.
    pub fn revocation_url(mut self, url: impl Into<String>) -> Self {
        if let Place::Known { revoke, .. } = &mut self.place {
            *revoke = Some(url.into());
        }
        self
    }

    /// What the provider is asked for. It is the same for everybody, whatever scopes a client of the
    /// proxy asks for.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// The claim, or the member of the user's data, that names the user; `sub` if nothing is said. It has
    /// to be one that is never given to anybody else: no e-mail address, no name that can be changed.
    pub fn subject(mut self, claim: impl Into<String>) -> Self {
        self.subject = claim.into();
        self
    }

    /// The one that names the user's tenant. Who has none is not let in.
    pub fn tenant(mut self, claim: impl Into<String>) -> Self {
        self.tenant = Some(claim.into());
        self
    }

    /// One more parameter of the address at which people log in.
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

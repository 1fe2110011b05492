//! OAuth at an upstream: whose tokens the gateway sends, and how it acquires them.

use outlive::{auth::jose::SigningKey, client::transport::SecretString};

/// OAuth at an upstream: whose tokens the gateway sends, and how it acquires them.
///
/// ```
/// use outlive_gateway::{Upstream, UpstreamAuth};
///
/// let linear = Upstream::url("linear", "https://mcp.linear.app/mcp").auth(UpstreamAuth::login());
/// let billing = UpstreamAuth::client_credentials("gateway").client_secret("secret");
/// let billing = Upstream::url("billing", "https://billing.example/mcp").auth(billing);
/// # let _ = (linear, billing);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct UpstreamAuth {
    pub(crate) kind: AuthKind,
    pub(crate) scopes: Vec<String>,
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<SecretString>,
    /// Private key in PEM form.
    pub(crate) client_key: Option<SecretString>,
}

/// Way in which the gateway acquires tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AuthKind {
    /// An operator logs in, once for the gateway.
    Login,
    /// The gateway authenticates as a client, without a user.
    ClientCredentials,
    /// The gateway exchanges a token of the principal (RFC 8693).
    Exchange(Exchange),
    /// The principal logs in, on a page of the server.
    EachUser,
}

/// Settings of a token exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    pub(crate) token_url: String,
    pub(crate) audience: Option<String>,
    pub(crate) resource: Option<String>,
    pub(crate) subject: ExchangeSubject,
}

/// Token that the gateway exchanges for one at an upstream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExchangeSubject {
    /// The access token of the principal's newest request; see
    /// [`GatewayBuilder::delegates`](crate::GatewayBuilder::delegates).
    #[default]
    Principal,
    /// The renewable token of the principal at the identity provider behind the server; see
    /// [`GatewayBuilder::provider_tokens`](crate::GatewayBuilder::provider_tokens).
    Provider,
}

impl UpstreamAuth {
    /// Uses the login of an operator. One login serves all clients and all replicas.
    pub fn login() -> Self {
        Self::new(AuthKind::Login)
    }

    /// Uses the client credentials grant of a registered client, which needs
    /// [`UpstreamAuth::client_secret`] or [`UpstreamAuth::client_key`].
    pub fn client_credentials(client_id: impl Into<String>) -> Self {
        Self::new(AuthKind::ClientCredentials).client_id(client_id)
    }

    /// Exchanges a token of the principal at a token endpoint (RFC 8693), so that the upstream gets a
    /// token of the same user that was issued for the upstream. Needs [`UpstreamAuth::audience`] or
    /// [`UpstreamAuth::resource`], and a client with a secret or a key.
    pub fn exchange(token_url: impl Into<String>) -> Self {
        let (token_url, subject) = (token_url.into(), ExchangeSubject::default());
        Self::new(AuthKind::Exchange(Exchange {
            token_url,
            audience: None,
            resource: None,
            subject,
        }))
    }

    /// Sets the name of the upstream at the authorization server, for an exchange.
    pub fn audience(self, audience: impl Into<String>) -> Self {
        let audience = audience.into();
        self.with_exchange(|exchange| exchange.audience = Some(audience))
    }

    /// Sets the URI of the upstream at the authorization server, for an exchange.
    pub fn resource(self, resource: impl Into<String>) -> Self {
        let resource = resource.into();
        self.with_exchange(|exchange| exchange.resource = Some(resource))
    }

    /// Sets the token that is exchanged.
    pub fn subject(self, subject: ExchangeSubject) -> Self {
        self.with_exchange(|exchange| exchange.subject = subject)
    }

    /// Uses a login of each principal at the upstream. A principal logs in on a page of the server; see
    /// [`GatewayBuilder::connect_url`](crate::GatewayBuilder::connect_url).
    pub fn each_user() -> Self {
        Self::new(AuthKind::EachUser)
    }

    fn with_exchange(mut self, change: impl FnOnce(&mut Exchange)) -> Self {
        if let AuthKind::Exchange(exchange) = &mut self.kind {
            change(exchange);
        }
        self
    }

    fn new(kind: AuthKind) -> Self {
        Self { kind, scopes: Vec::new(), client_id: None, client_secret: None, client_key: None }
    }

    /// Sets the scopes to request if the upstream does not specify any.
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the client ID of a client that is registered with the authorization server. By default,
    /// a login registers a client dynamically.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// Sets the secret of the registered client.
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.client_secret = Some(secret.into());
        self
    }

    /// Sets the private key of the registered client, in PEM form (PKCS#8). The gateway signs
    /// assertions with it instead of sending a secret.
    pub fn client_key(mut self, pem: impl Into<SecretString>) -> Self {
        self.client_key = Some(pem.into());
        self
    }

    /// Returns the members that identify the client and its rights, without secrets. Tokens are valid
    /// only with the same ones.
    pub(crate) fn fingerprint(&self) -> String {
        let mut parts = match &self.kind {
            AuthKind::Login => vec!["login"],
            AuthKind::ClientCredentials => vec!["client-credentials"],
            AuthKind::EachUser => vec!["each-user"],
            AuthKind::Exchange(exchange) => vec![
                "exchange",
                exchange.token_url.as_str(),
                exchange.audience.as_deref().unwrap_or_default(),
                exchange.resource.as_deref().unwrap_or_default(),
                match exchange.subject {
                    ExchangeSubject::Principal => "principal",
                    ExchangeSubject::Provider => "provider",
                },
            ],
        };
        parts.push(self.client_id.as_deref().unwrap_or_default());
        parts.extend(self.scopes.iter().map(String::as_str));
        parts.join("\n")
    }

    /// Returns whether the tokens belong to the principal of a call.
    pub(crate) fn is_of_users(&self) -> bool {
        match self.kind {
            AuthKind::Login | AuthKind::ClientCredentials => false,
            AuthKind::Exchange(_) | AuthKind::EachUser => true,
        }
    }

    /// Returns the private key.
    pub(crate) fn signing_key(&self) -> Result<Option<SigningKey>, String> {
        let Some(pem) = &self.client_key else { return Ok(None) };
        let key = SigningKey::from_any_pem(pem.expose());
        key.map(Some).map_err(|_| {
            "the client key is not a private key in PEM form (PKCS#8) for ES256, EdDSA or RS256; \
             write one with `openssl genpkey -algorithm ed25519`"
                .to_owned()
        })
    }
}

//! Builder of an OAuth client.

use std::{fmt, path::PathBuf, sync::Arc};

use outlive_protocol::Clock;
use outlive_transport::{TokioClock, client::SecretString};

use super::{
    assertion::Assertion,
    grant::{EnterpriseAuthorization, Grant},
    login::Login,
    oauth::OAuth,
    scopes::Scopes,
    settings::{Configured, Settings},
    store::{CredentialStore, MemoryCredentialStore},
    token_exchange::TokenExchange,
};
use crate::{fetch::NetworkPolicy, jose::SigningKey};

/// Builder of an [`OAuth`] client.
#[must_use]
pub struct OAuthBuilder(Settings);

impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl OAuth {
    /// Returns a builder of an OAuth client for the MCP server at this URL.
    pub fn builder(server: impl Into<String>) -> OAuthBuilder {
        OAuthBuilder(Settings {
            server: server.into(),
            name: "Outlive".to_owned(),
            client: None,
            document: None,
            document_key: None,
            issuer: None,
            scopes: Scopes::default(),
            grant: Grant::Code,
            login: None,
            store: Arc::new(MemoryCredentialStore::new()),
            dpop: false,
            token_required: false,
            network_policy: None,
            plain_http: false,
            ca_file: None,
            clock: Arc::new(TokioClock::new()),
        })
    }
}

impl OAuthBuilder {
    /// Sets the name of this program, which the consent page shows.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// Sets the client ID of a client that is registered with the authorization server in advance.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.configured().id = id.into();
        self
    }

    /// Sets the secret of the registered client.
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.configured().secret = Some(secret.into());
        self
    }

    /// Sets the key of the registered client, which signs assertions instead of sending a secret.
    pub fn client_key(mut self, key: SigningKey) -> Self {
        self.configured().key = Some(Arc::new(key));
        self
    }

    fn configured(&mut self) -> &mut Configured {
        self.0.client.get_or_insert(Configured { id: String::new(), secret: None, key: None })
    }

    /// Sets the URL of this program's client ID metadata document. The `https:` URL is the client
    /// ID at every authorization server that supports such documents.
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.0.document = Some(url.into());
        self
    }

    /// Sets the key with which this program authenticates as the client of the document
    /// (`private_key_jwt`).
    ///
    /// The document contains the public key or links to it; see [`ClientMetadataDocument`]. The key
    /// is not used with an authorization server that does not support this method.
    ///
    /// [`ClientMetadataDocument`]: super::ClientMetadataDocument
    pub fn client_metadata_key(mut self, key: SigningKey) -> Self {
        self.0.document_key = Some(Arc::new(key));
        self
    }

    /// Sets the authorization server that the client is registered with. No other server receives
    /// its secret. The default is the first server in the metadata of the MCP server.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.0.issuer = Some(issuer.into());
        self
    }

    /// Sets the scopes to request if the server does not specify any.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.0.scopes = scopes.into_iter().collect();
        self
    }

    /// Sets the login method. Without it, requests that require a login fail.
    pub fn login(mut self, login: impl Login) -> Self {
        self.0.login = Some(Arc::new(login));
        self
    }

    /// Uses the client credentials grant, for programs that do not act for a user.
    pub fn client_credentials(mut self) -> Self {
        self.0.grant = Grant::ClientCredentials;
        self
    }

    /// Uses an assertion of the platform that this program runs on (workload identity).
    pub fn workload_identity(mut self, assertion: Assertion) -> Self {
        self.0.grant = Grant::Workload(assertion);
        self
    }

    /// Uses the identity provider of an enterprise, where the user is already logged in.
    pub fn enterprise(mut self, enterprise: EnterpriseAuthorization) -> Self {
        self.0.grant = Grant::Enterprise(enterprise);
        self
    }

    /// Exchanges the token of a user for a token at the server.
    pub fn token_exchange(mut self, exchange: TokenExchange) -> Self {
        self.0.grant = Grant::Exchange(exchange);
        self
    }

    /// Sets the credential store. The default is in memory.
    pub fn store(mut self, store: impl CredentialStore) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// Requires tokens that are bound to a key (DPoP). By default, tokens are bound only if the
    /// server requires it.
    pub fn dpop(mut self) -> Self {
        self.0.dpop = true;
        self
    }

    /// Sets whether every request must have a token. The client then acquires one before the first
    /// request, and renews it before it expires; without one, a request fails and is not sent. By
    /// default, the first request has no token, and the server's challenge makes the client acquire
    /// one.
    pub fn require_token(mut self, required: bool) -> Self {
        self.0.token_required = required;
        self
    }

    /// Sets the addresses from which metadata and tokens may be fetched. The default is public
    /// addresses; private ones are added if the MCP server has a private address.
    pub fn network_policy(mut self, policy: NetworkPolicy) -> Self {
        self.0.network_policy = Some(policy);
        self
    }

    /// Sets whether `http:` to other machines is allowed. Disabled by default, because tokens can
    /// be intercepted. Use it only on a trusted network.
    pub fn allow_http(mut self, allowed: bool) -> Self {
        self.0.plain_http = allowed;
        self
    }

    /// Sets a PEM file of root certificates, which replaces those of the system.
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.0.ca_file = Some(file.into());
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.0.clock = Arc::new(clock);
        self
    }

    /// Builds the client. The client sends no request yet.
    pub fn build(self) -> OAuth {
        OAuth::new(self.0)
    }
}

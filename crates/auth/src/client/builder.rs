//! What an OAuth client is told before it begins.

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
};
use crate::{fetch::NetworkPolicy, jose::SigningKey};

/// Makes an [`OAuth`].
#[must_use]
pub struct OAuthBuilder(Settings);

impl fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuthBuilder").field("name", &self.0.name).finish_non_exhaustive()
    }
}

impl OAuth {
    /// An OAuth client for the MCP server at this URL: the one that the client connects to.
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
            network_policy: None,
            plain_http: false,
            ca_file: None,
            clock: Arc::new(TokioClock::new()),
        })
    }
}

impl OAuthBuilder {
    /// What this program is called where its user is asked whether to let it in.
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.0.name = name.into();
        self
    }

    /// The id of a client that was registered with the authorization server by hand.
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.configured().id = id.into();
        self
    }

    /// The secret of that client.
    pub fn client_secret(mut self, secret: impl Into<SecretString>) -> Self {
        self.configured().secret = Some(secret.into());
        self
    }

    /// The key of that client: it signs an assertion in place of showing a secret.
    pub fn client_key(mut self, key: SigningKey) -> Self {
        self.configured().key = Some(Arc::new(key));
        self
    }

    fn configured(&mut self) -> &mut Configured {
        self.0.client.get_or_insert(Configured { id: String::new(), secret: None, key: None })
    }

    /// Where this program publishes a document about itself (a client ID metadata document): an
    /// `https:` URL, which is its id with every authorization server that can read such documents.
    pub fn client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.0.document = Some(url.into());
        self
    }

    /// The key by which this program shows that the document is about it (`private_key_jwt`). Its
    /// public half is in the document, or where that says; see [`ClientMetadataDocument`]. It is not used
    /// with an authorization server that does not take it.
    ///
    /// [`ClientMetadataDocument`]: super::ClientMetadataDocument
    pub fn client_metadata_key(mut self, key: SigningKey) -> Self {
        self.0.document_key = Some(Arc::new(key));
        self
    }

    /// The authorization server that the client was registered with. No other one gets to see its
    /// secret. Without this it is the first one that the server names.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.0.issuer = Some(issuer.into());
        self
    }

    /// Scopes to ask for, where the server does not say what it wants.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.0.scopes = scopes.into_iter().collect();
        self
    }

    /// Who has somebody log in. Without this, logins are refused.
    pub fn login(mut self, login: impl Login) -> Self {
        self.0.login = Some(Arc::new(login));
        self
    }

    /// Gets tokens with the client's own credentials: for programs that act for nobody.
    pub fn client_credentials(mut self) -> Self {
        self.0.grant = Grant::ClientCredentials;
        self
    }

    /// Gets tokens with an assertion of the platform that this program runs on.
    pub fn workload_identity(mut self, assertion: Assertion) -> Self {
        self.0.grant = Grant::Workload(assertion);
        self
    }

    /// Gets tokens through the identity provider of a company, where the user is logged in already.
    pub fn enterprise(mut self, enterprise: EnterpriseAuthorization) -> Self {
        self.0.grant = Grant::Enterprise(enterprise);
        self
    }

    /// Where credentials are kept; in memory by default.
    pub fn store(mut self, store: impl CredentialStore) -> Self {
        self.0.store = Arc::new(store);
        self
    }

    /// Wants tokens that are bound to a key (DPoP), and no others. Without this they are bound where
    /// the server asks for it.
    pub fn dpop(mut self) -> Self {
        self.0.dpop = true;
        self
    }

    /// Which addresses may be asked for metadata and tokens. By default public ones, and those of
    /// this machine and its private networks if the server itself is at such an address.
    pub fn network_policy(mut self, policy: NetworkPolicy) -> Self {
        self.0.network_policy = Some(policy);
        self
    }

    /// Whether the client also uses `http:` to other machines; off by default. Anyone on the path can
    /// read the tokens, so use it only on a network you trust.
    pub fn allow_http(mut self, allowed: bool) -> Self {
        self.0.plain_http = allowed;
        self
    }

    /// A PEM file of the certificates to trust, in place of the system's.
    pub fn ca_file(mut self, file: impl Into<PathBuf>) -> Self {
        self.0.ca_file = Some(file.into());
        self
    }

    /// Where time comes from.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.0.clock = Arc::new(clock);
        self
    }

    /// Ready; nothing is asked of anybody yet.
    pub fn build(self) -> OAuth {
        OAuth::new(self.0)
    }
}

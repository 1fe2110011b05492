//! What is kept of logins: a file in the user's data folder that nobody else can read.
//!
//! The tokens in it, and the clients that registered themselves, belong to the OAuth client. Beside
//! them stand the clients that were named by hand, because whoever renews a token has to be the one who
//! got it.

use outlive::auth::client::{
    CredentialStore, FileStore, OAuth, OAuthBuilder, OAuthError, Secret, StoreError,
};
use serde::{Deserialize, Serialize};

use crate::{
    paths,
    trouble::{Kind, Result, Trouble},
};

/// The file.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    store: FileStore,
}

/// A client that somebody has registered with the authorization server. No `Debug`: it has a secret.
#[derive(Serialize, Deserialize)]
pub(super) struct OwnClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// The port that its logins come back to.
    pub(super) port: Option<u16>,
}

impl Credentials {
    /// Opens it, in the user's data folder. It need not be there yet.
    pub(crate) fn open() -> Result<Self> {
        Ok(Self { store: FileStore::new(paths::data()?.join("credentials.json")) })
    }

    /// The OAuth client for a server, which lets nobody log in yet.
    pub(crate) fn oauth(&self, url: &str) -> Result<OAuthBuilder> {
        Ok(self.oauth_as(url, self.own_client(url)?.as_ref()))
    }

    /// The same, as a client that was registered by hand.
    pub(super) fn oauth_as(&self, url: &str, client: Option<&OwnClient>) -> OAuthBuilder {
        let mut builder =
            OAuth::builder(url).client_name("Outlive (command line)").store(self.store.clone());
        if let Some(client) = client {
            builder = builder.client_id(&client.id);
            if let Some(secret) = &client.secret {
                builder = builder.client_secret(secret.as_str());
            }
        }
        builder
    }

    /// The servers that somebody is logged in to.
    pub(super) fn servers(&self) -> Result<Vec<String>> {
        self.store.servers().map_err(unusable)
    }

    /// The client that was named for a server.
    pub(super) fn own_client(&self, url: &str) -> Result<Option<OwnClient>> {
        let kept = self.store.get(&own_name(url)).map_err(unusable)?;
        // What cannot be read is named again.
        Ok(kept.and_then(|kept| serde_json::from_str(kept.expose()).ok()))
    }

    /// The port that logins to a server come back to, if that was said with its client.
    pub(crate) fn port(&self, url: &str) -> Result<Option<u16>> {
        Ok(self.own_client(url)?.and_then(|client| client.port))
    }

    pub(super) fn keep_client(&self, url: &str, client: &OwnClient) -> Result<()> {
        let kept = Secret::new(serde_json::to_string(client).unwrap_or_default());
        self.store.put(&own_name(url), &kept).map_err(unusable)
    }

    pub(super) fn forget_client(&self, url: &str) -> Result<()> {
        match self.store.get(&own_name(url)).map_err(unusable)? {
            Some(_) => self.store.remove(&own_name(url)).map_err(unusable),
            None => Ok(()),
        }
    }
}

fn own_name(url: &str) -> String {
    // Tokens are kept without the query as well.
    format!("named for {}", url.split(['?', '#']).next().unwrap_or(url))
}

fn unusable(error: StoreError) -> Trouble {
    Trouble::new(Kind::Failed, error)
}

/// Why there is no token, in the words of this program.
pub(crate) fn trouble(error: &OAuthError) -> Trouble {
    let or_token = "--token-env VARIABLE or --token-file FILE, if you were given a token";
    match error {
        OAuthError::LoginRequired { server } => {
            Trouble::unreachable(format_args!("{server} wants its user to log in"))
                .remedy(format_args!("`outlive login {server}`; or {or_token}"))
        }
        OAuthError::NoRegistration { issuer } => Trouble::unreachable(format_args!(
            "{issuer} does not let programs register themselves"
        ))
        .remedy(format_args!(
            "register one there by hand, and `outlive login URL --client-id ID`; or {or_token}"
        )),
        OAuthError::Insecure { .. } | OAuthError::NoMetadata { .. } => {
            Trouble::unreachable(error).remedy(or_token)
        }
        OAuthError::Store(error) => Trouble::new(Kind::Failed, error),
        error => Trouble::unreachable(error),
    }
}

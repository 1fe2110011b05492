//! What is kept of logins: in the user's data folder, sealed with a key that the operating system
//! keeps, or where it keeps none in a file that nobody else can read.
//!
//! The tokens in it, and the clients that registered themselves, belong to the OAuth client. Beside
//! them stand the clients that were named by hand, because whoever renews a token has to be the one who
//! got it.

use std::env;

use outlive::auth::client::{
    CredentialLocation, CredentialStore, CredentialStoreError, KeyringStore, OAuth, OAuthBuilder,
    OAuthError, SecretString,
};
use serde::{Deserialize, Serialize};

use crate::{
    error::{CliError, Kind, Result},
    paths,
};

/// Says with `off` that the operating system's place for secrets is not to be used.
const KEY_STORE: &str = "OUTLIVE_KEYRING";

/// What is kept.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    store: KeyringStore,
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
        let store = KeyringStore::new("outlive", paths::data()?.join("credentials.json"));
        let wanted = match env::var_os(KEY_STORE) {
            None => true,
            Some(said) if said == "on" || said.is_empty() => true,
            Some(said) if said == "off" => false,
            Some(said) => {
                let said = said.to_string_lossy();
                return Err(CliError::usage(format!("{KEY_STORE} is `{said}`"))
                    .remedy(format!("{KEY_STORE}=on or {KEY_STORE}=off")));
            }
        };
        Ok(Self { store: if wanted { store } else { store.without_system() } })
    }

    /// Where the login to a server is kept, if there is one.
    pub(super) fn kept_in(&self, url: &str) -> Result<Option<CredentialLocation>> {
        self.store.location(url).map_err(unusable)
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

    /// What is to be said of a login that is there and cannot be opened.
    pub(super) fn closed(&self, url: &str, kind: Kind) -> Result<Option<CliError>> {
        let Some(why) = self.store.unreadable(url).map_err(unusable)? else { return Ok(None) };
        let trouble = format!("the login to {url} cannot be opened: {why}");
        let remedy = format!("unlock it and try again; or `outlive login {url}`");
        Ok(Some(CliError::new(kind, trouble).remedy(remedy)))
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
        let kept = SecretString::new(serde_json::to_string(client).unwrap_or_default());
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

fn unusable(error: CredentialStoreError) -> CliError {
    CliError::new(Kind::Failed, error)
}

/// Why there is no token, in the words of this program.
pub(crate) fn trouble(error: &OAuthError) -> CliError {
    let or_token = "--token-env VARIABLE or --token-file FILE, if you were given a token";
    match error {
        OAuthError::LoginRequired { server } => {
            let closed = Credentials::open().and_then(|it| it.closed(server, Kind::Unreachable));
            if let Ok(Some(trouble)) = closed {
                return trouble;
            }
            CliError::unreachable(format_args!("{server} wants its user to log in"))
                .remedy(format_args!("{or_token}; else `outlive login {server}`"))
        }
        OAuthError::NoRegistration { issuer } => CliError::unreachable(format_args!(
            "{issuer} does not let programs register themselves"
        ))
        .remedy(format_args!(
            "register one there by hand, and `outlive login URL --client-id ID`; or {or_token}"
        )),
        OAuthError::Insecure { .. } | OAuthError::NoMetadata { .. } => {
            CliError::unreachable(error).remedy(or_token)
        }
        OAuthError::Store(error) => CliError::new(Kind::Failed, error),
        error => CliError::unreachable(error),
    }
}

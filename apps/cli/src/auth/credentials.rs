//! Stored logins, in the user's data folder.
//!
//! The file is encrypted with a key in the operating system's keyring. Without a keyring, only the
//! file's mode protects it. The OAuth client stores tokens and registered clients here. This module
//! adds clients that the user registered by hand, because only the client that got a token can
//! refresh it.

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

/// Environment variable that disables the operating system's keyring with `off`.
const KEY_STORE: &str = "OUTLIVE_KEYRING";

/// The stored logins.
#[derive(Clone, Debug)]
pub(crate) struct Credentials {
    store: KeyringStore,
}

/// A client that the user registered with the authorization server by hand. No `Debug`, because it
/// has a secret.
#[derive(Serialize, Deserialize)]
pub(super) struct OwnClient {
    pub(super) id: String,
    pub(super) secret: Option<String>,
    /// Port of the client's redirect URI.
    pub(super) port: Option<u16>,
}

impl Credentials {
    /// Opens the logins in the user's data folder. The file need not exist.
    pub(crate) fn open() -> Result<Self> {
        let store = KeyringStore::new("outlive", paths::data()?.join("credentials.json"));
        let wanted = match env::var_os(KEY_STORE) {
            None => true,
            Some(said) if said == "on" || said.is_empty() => true,
            Some(said) if said == "off" => false,
            Some(said) => {
                let said = said.to_string_lossy();
                return Err(CliError::usage(format!("{KEY_STORE} has the invalid value `{said}`"))
                    .remedy(format!("set {KEY_STORE}=on or {KEY_STORE}=off")));
            }
        };
        Ok(Self { store: if wanted { store } else { store.without_system() } })
    }

    /// Returns the location of the login to a server, if there is one.
    pub(super) fn kept_in(&self, url: &str) -> Result<Option<CredentialLocation>> {
        self.store.location(url).map_err(unusable)
    }

    /// Returns the OAuth client for a server, without an interactive login.
    pub(crate) fn oauth(&self, url: &str) -> Result<OAuthBuilder> {
        Ok(self.oauth_as(url, self.own_client(url)?.as_ref()))
    }

    /// Returns the OAuth client for a server that identifies itself as `client`.
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

    /// Returns the error for a login that exists but cannot be decrypted.
    pub(super) fn closed(&self, url: &str, kind: Kind) -> Result<Option<CliError>> {
        let Some(why) = self.store.unreadable(url).map_err(unusable)? else { return Ok(None) };
        let trouble = format!("cannot read the login to {url}: {why}");
        let remedy = format!("unlock the keyring and try again; or run `outlive login {url}`");
        Ok(Some(CliError::new(kind, trouble).remedy(remedy)))
    }

    /// Returns the servers that the user is logged in to.
    pub(super) fn servers(&self) -> Result<Vec<String>> {
        self.store.servers().map_err(unusable)
    }

    /// Returns the client that the user named for a server.
    pub(super) fn own_client(&self, url: &str) -> Result<Option<OwnClient>> {
        let kept = self.store.get(&own_name(url)).map_err(unusable)?;
        // An unreadable entry counts as absent: the user names the client again.
        Ok(kept.and_then(|kept| serde_json::from_str(kept.expose()).ok()))
    }

    /// Returns the port that the user named with the server's client.
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
    // The store ignores the query of a URL for tokens, too.
    format!("named for {}", url.split(['?', '#']).next().unwrap_or(url))
}

fn unusable(error: CredentialStoreError) -> CliError {
    CliError::new(Kind::Failed, error)
}

/// Converts an OAuth error to a message with a remedy.
pub(crate) fn trouble(error: &OAuthError) -> CliError {
    let or_token = "pass --token-env VARIABLE or --token-file FILE if you have a token";
    match error {
        OAuthError::LoginRequired { server } => {
            let closed = Credentials::open().and_then(|it| it.closed(server, Kind::Unreachable));
            if let Ok(Some(trouble)) = closed {
                return trouble;
            }
            CliError::unreachable(format_args!("{server} requires a login"))
                .remedy(format_args!("{or_token}; else run `outlive login {server}`"))
        }
        OAuthError::NoRegistration { issuer } => CliError::unreachable(format_args!(
            "{issuer} does not support dynamic client registration"
        ))
        .remedy(format_args!(
            "register a client there by hand, then run `outlive login URL --client-id ID`; or {or_token}"
        )),
        OAuthError::Insecure { .. } | OAuthError::NoMetadata { .. } => {
            CliError::unreachable(error).remedy(or_token)
        }
        OAuthError::Store(error) => CliError::new(Kind::Failed, error),
        error => CliError::unreachable(error),
    }
}

//! Why there is no token, and what to do about it.

use std::{fmt, sync::Arc};

use super::store::CredentialStoreError;
use crate::{fetch::FetchError, jose::KeyError};

/// What can go wrong on the way to a token. Each text says what to do; none holds a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// Somebody has to log in, and nobody is there who could.
    #[error("{server} wants its user to log in; log in first, or give the client a `login`")]
    LoginRequired {
        /// The MCP server.
        server: String,
    },
    /// Something could not be fetched.
    #[error(transparent)]
    Fetch(Arc<FetchError>),
    /// The server's metadata is about another one.
    #[error(
        "the metadata of {server} is about {named}, which is another server; check the address, or report it to its operator"
    )]
    OtherResource {
        /// The MCP server.
        server: String,
        /// Whom its metadata is about.
        named: String,
    },
    /// There is no metadata of the authorization server.
    #[error("the authorization server {issuer} has no metadata; report it to its operator")]
    NoMetadata {
        /// The authorization server.
        issuer: String,
    },
    /// Metadata is about another authorization server.
    #[error(
        "the metadata of {issuer} is about {named}, which is another authorization server; report it to its operator"
    )]
    OtherIssuer {
        /// Who was asked.
        issuer: String,
        /// Who answered.
        named: String,
    },
    /// The authorization server lacks something that this client cannot do without.
    #[error("the authorization server {issuer} {lacks}")]
    Unsuitable {
        /// The authorization server.
        issuer: String,
        /// What it lacks.
        lacks: &'static str,
    },
    /// Nobody can register there.
    #[error(
        "{issuer} does not let clients register themselves; register one there, and give its id with `client_id`"
    )]
    NoRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// The address of the client's document about itself cannot be one.
    #[error("`{url}` cannot be a client's id; it has to be an https: URL with a path")]
    BadDocument {
        /// The address that is configured.
        url: String,
    },
    /// An authorization server refused something.
    #[error("{what} was refused: {refusal}; {}", refusal.next_step())]
    Refused {
        /// What was asked for.
        what: &'static str,
        /// What it said.
        refusal: OAuthErrorResponse,
    },
    /// The answer to a login is not the answer to the one that was begun.
    #[error("the answer to the login is not to be trusted: {0}; log in again")]
    BadRedirect(&'static str),
    /// The login did not come to an end.
    #[error("the login did not work: {0}")]
    Login(String),
    /// More scopes are wanted than a login brings.
    #[error(
        "{server} wants the scopes `{scopes}`, and the last login has not brought them; ask for access, then log out and in again"
    )]
    InsufficientScope {
        /// The MCP server.
        server: String,
        /// All that it wants.
        scopes: String,
    },
    /// A token that is brand-new is refused.
    #[error(
        "{server} refuses the token that {issuer} has just given for it; report it to the operator of the server"
    )]
    TokenRefused {
        /// The MCP server.
        server: String,
        /// The authorization server.
        issuer: String,
    },
    /// The server has another authorization server than the one that the configured client is
    /// registered with.
    #[error(
        "{server} now belongs to the authorization server {to}, and the client is registered with {from}; register it there, and configure that"
    )]
    Moved {
        /// The MCP server.
        server: String,
        /// Where the client is registered.
        from: String,
        /// Where it would have to be.
        to: String,
    },
    /// Tokens would go over the network in clear text.
    #[error("no token is sent to {server} without TLS; use https:")]
    Insecure {
        /// The MCP server.
        server: String,
    },
    /// Credentials could not be kept or read.
    #[error(transparent)]
    Store(Arc<CredentialStoreError>),
    /// Something could not be signed.
    #[error("a proof could not be signed: {0}")]
    Key(#[from] KeyError),
    /// The assertion that stands for this program's identity could not be got.
    #[error("the identity assertion could not be got: {0}")]
    Assertion(String),
}

impl OAuthError {
    /// Whether the same may well work a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Fetch(error) => error.is_transient(),
            Self::Refused { refusal, .. } => {
                matches!(refusal.code.as_str(), "temporarily_unavailable" | "server_error")
            }
            _ => false,
        }
    }
}

impl From<FetchError> for OAuthError {
    fn from(error: FetchError) -> Self {
        Self::Fetch(Arc::new(error))
    }
}

impl From<CredentialStoreError> for OAuthError {
    fn from(error: CredentialStoreError) -> Self {
        Self::Store(Arc::new(error))
    }
}

/// What an authorization server says when it refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OAuthErrorResponse {
    /// `invalid_grant`, `access_denied`, …
    pub code: String,
    /// For people.
    pub description: Option<String>,
}

impl OAuthErrorResponse {
    /// Takes what was said, without control characters and not without end.
    pub(super) fn new(code: &str, description: Option<&str>) -> Self {
        let clean = |text: &str, most: usize| -> String {
            text.chars().filter(|c| !c.is_control()).take(most).collect()
        };
        Self {
            code: clean(code, 64),
            description: description.map(|it| clean(it, 300)).filter(|it| !it.is_empty()),
        }
    }
}

impl OAuthErrorResponse {
    /// What whoever reads this can do. The codes are those of RFC 6749, RFC 7591 and RFC 8707.
    fn next_step(&self) -> &'static str {
        match self.code.as_str() {
            "access_denied" => "log in again and agree, or ask for access",
            "invalid_grant" => "log in again",
            "invalid_client" | "unauthorized_client" => "check the id and the secret of the client",
            "invalid_scope" => "ask for other scopes, or for access",
            "temporarily_unavailable" | "server_error" | "slow_down" => "try again later",
            _ => "report it to the operator of the authorization server",
        }
    }
}

impl fmt::Display for OAuthErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.code)?;
        match &self.description {
            Some(description) => write!(f, " ({description})"),
            None => Ok(()),
        }
    }
}

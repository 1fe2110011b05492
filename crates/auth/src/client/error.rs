//! Errors of the OAuth client.

use std::{fmt, sync::Arc};

use super::store::CredentialStoreError;
use crate::{fetch::FetchError, jose::KeyError};

/// Error of the OAuth client. Each message says what to do; no message contains a secret.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A user must log in, but no login method is available.
    #[error("{server} requires a login; log in first, or configure the client with a `login`")]
    LoginRequired {
        /// The MCP server.
        server: String,
    },
    /// A document or token could not be fetched.
    #[error(transparent)]
    Fetch(Arc<FetchError>),
    /// The resource metadata describes another server.
    #[error(
        "the metadata of {server} describes another server, {named}; check the address, or report it to its operator"
    )]
    OtherResource {
        /// The MCP server.
        server: String,
        /// Server that the metadata describes.
        named: String,
    },
    /// The authorization server publishes no metadata.
    #[error("the authorization server {issuer} publishes no metadata; report it to its operator")]
    NoMetadata {
        /// The authorization server.
        issuer: String,
    },
    /// The metadata describes another authorization server.
    #[error(
        "the metadata of {issuer} describes another authorization server, {named}; report it to its operator"
    )]
    OtherIssuer {
        /// Authorization server that was queried.
        issuer: String,
        /// Authorization server that the metadata describes.
        named: String,
    },
    /// The authorization server lacks a required feature.
    #[error("the authorization server {issuer} {lacks}")]
    Unsuitable {
        /// The authorization server.
        issuer: String,
        /// Description of the missing feature.
        lacks: &'static str,
    },
    /// The authorization server does not support dynamic client registration.
    #[error(
        "{issuer} does not support dynamic client registration; register a client there, and set its ID with `client_id`"
    )]
    NoRegistration {
        /// The authorization server.
        issuer: String,
    },
    /// The URL of the client ID metadata document is invalid.
    #[error("`{url}` is not a valid client ID; use an https: URL with a path")]
    BadDocument {
        /// Configured URL.
        url: String,
    },
    /// The authorization server rejected a request.
    #[error("{request} was rejected: {response}; {}", response.next_step())]
    Refused {
        /// Rejected request.
        request: OAuthRequest,
        /// Error response of the authorization server.
        response: OAuthErrorResponse,
    },
    /// The redirect does not belong to the current login.
    #[error("the redirect of the login is not trusted: {0}; log in again")]
    BadRedirect(&'static str),
    /// The login was not completed.
    #[error("the login failed: {0}")]
    Login(String),
    /// The server requires more scopes than the login granted.
    #[error(
        "{server} requires the scopes `{scopes}`, which the last login did not grant; request access, then log out and log in again"
    )]
    InsufficientScope {
        /// The MCP server.
        server: String,
        /// Required scopes.
        scopes: String,
    },
    /// The server rejected a newly issued token.
    #[error(
        "{server} rejected a token that {issuer} has just issued for it; report it to the operator of the server"
    )]
    TokenRefused {
        /// The MCP server.
        server: String,
        /// The authorization server.
        issuer: String,
    },
    /// The server uses another authorization server than the one that the client is registered
    /// with.
    #[error(
        "{server} now uses the authorization server {to}, but the client is registered with {from}; register the client with {to} and update the configuration"
    )]
    Moved {
        /// The MCP server.
        server: String,
        /// Authorization server that the client is registered with.
        from: String,
        /// Authorization server that the MCP server uses.
        to: String,
    },
    /// The connection to the server is not encrypted.
    #[error("tokens are not sent to {server} without TLS; use https:")]
    Insecure {
        /// The MCP server.
        server: String,
    },
    /// Credentials could not be stored or read.
    #[error(transparent)]
    Store(Arc<CredentialStoreError>),
    /// A proof or assertion could not be signed.
    #[error("a proof could not be signed: {0}")]
    Key(#[from] KeyError),
    /// The identity assertion is not available.
    #[error("the identity assertion is not available: {0}")]
    Assertion(String),
}

impl OAuthError {
    /// Returns whether a later retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Fetch(error) => error.is_transient(),
            Self::Refused { response, .. } => {
                matches!(response.code.as_str(), "temporarily_unavailable" | "server_error")
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

/// Request to an authorization server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OAuthRequest {
    /// Dynamic client registration (RFC 7591).
    Registration,
    /// Login of the user in a browser.
    Login,
    /// Request for the first token of a grant.
    Token,
    /// Request for a token with a refresh token.
    TokenRefresh,
    /// Exchange of an identity assertion (RFC 8693).
    TokenExchange,
    /// Revocation of a token (RFC 7009).
    TokenRevocation,
}

impl fmt::Display for OAuthRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Registration => "the registration",
            Self::Login => "the login",
            Self::Token => "the token request",
            Self::TokenRefresh => "the token refresh",
            Self::TokenExchange => "the token exchange",
            Self::TokenRevocation => "the token revocation",
        })
    }
}

/// Error response of an authorization server (RFC 6749).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OAuthErrorResponse {
    /// Error code, such as `invalid_grant` or `access_denied`.
    pub code: String,
    /// Description for people.
    pub description: Option<String>,
}

/// Stands for the code of a response without one.
pub(crate) const NO_CODE: &str = "no error code";

impl OAuthErrorResponse {
    /// Returns whether the response had an error code, as that of every authorization server has.
    pub fn has_code(&self) -> bool {
        self.code != NO_CODE
    }

    /// Creates a response. Removes control characters and truncates long texts.
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
    /// Returns the remedy for the error code. The codes are those of RFC 6749, RFC 7591 and RFC
    /// 8707.
    fn next_step(&self) -> &'static str {
        match self.code.as_str() {
            "access_denied" => "log in again and consent, or request access",
            "invalid_grant" => "log in again",
            "invalid_client" | "unauthorized_client" => "check the client ID and the client secret",
            "invalid_scope" => "request other scopes, or request access",
            "temporarily_unavailable" | "server_error" | "slow_down" => "retry later",
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

//! Settings of a token exchange (RFC 8693).

use super::{assertion::Assertion, token_endpoint::Fields};

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
pub(super) const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
pub(super) const JWT: &str = "urn:ietf:params:oauth:token-type:jwt";

/// The exchange of a user's token for one at the MCP server (RFC 8693).
///
/// The client needs an ID, and a secret or a key.
///
/// ```
/// use outlive_auth::client::{Assertion, TokenExchange};
///
/// # let token = "…";
/// let exchange =
///     TokenExchange::new("https://id.example.com/token", Assertion::fixed(token)).audience("tracker");
/// ```
#[derive(Clone, Debug)]
pub struct TokenExchange {
    pub(super) token_endpoint: String,
    pub(super) subject: Assertion,
    audience: Option<String>,
    pub(super) resource: Option<String>,
}

impl TokenExchange {
    /// Creates an exchange at a token endpoint. `subject` returns the access token of the user.
    pub fn new(token_endpoint: impl Into<String>, subject: Assertion) -> Self {
        let token_endpoint = token_endpoint.into();
        Self { token_endpoint, subject, audience: None, resource: None }
    }

    /// Sets the name of the MCP server at the authorization server.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Sets the URI of the MCP server at the authorization server.
    #[must_use]
    pub fn resource(mut self, resource: impl Into<String>) -> Self {
        self.resource = Some(resource.into());
        self
    }

    /// Returns the fields of a token request for the token of a user.
    pub(super) fn fields(&self, subject: &str, scopes: &str) -> Fields<'static> {
        let mut fields = vec![
            ("grant_type", TOKEN_EXCHANGE.to_owned()),
            ("subject_token", subject.to_owned()),
            ("subject_token_type", ACCESS_TOKEN.to_owned()),
            ("requested_token_type", ACCESS_TOKEN.to_owned()),
        ];
        fields.extend(self.audience.clone().map(|audience| ("audience", audience)));
        fields.extend(self.resource.clone().map(|resource| ("resource", resource)));
        if !scopes.is_empty() {
            fields.push(("scope", scopes.to_owned()));
        }
        fields
    }
}

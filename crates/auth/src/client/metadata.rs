//! Published server metadata: RFC 9728, RFC 8414, OpenID Connect Discovery.

use serde::Deserialize;

/// Metadata of a protected resource. Contains only the members that the client uses.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ResourceMetadata {
    /// Resource identifier, verbatim: the client sends it unchanged to the authorization server.
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(super) dpop_bound_access_tokens_required: bool,
}

/// Metadata of an authorization server. Contains only the members that the client uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// Issuer, verbatim: it is compared byte for byte.
    pub issuer: String,
    /// URL at which users log in.
    pub authorization_endpoint: Option<String>,
    /// URL at which clients get tokens.
    pub token_endpoint: Option<String>,
    pub(crate) registration_endpoint: Option<String>,
    /// URL at which clients revoke tokens.
    pub revocation_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    pub(crate) grant_types_supported: Option<Vec<String>>,
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) dpop_signing_alg_values_supported: Vec<String>,
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(crate) client_id_metadata_document_supported: bool,
    /// Whether the server publishes no metadata, so that the default endpoints of 2025-03-26 apply.
    #[serde(skip)]
    pub(crate) is_assumed: bool,
}

impl ServerMetadata {
    /// Returns the default metadata of a server that publishes none.
    pub(crate) fn assumed(origin: &str) -> Self {
        let at = |path: &str| Some(format!("{origin}{path}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            is_assumed: true,
            ..Self::default()
        }
    }

    /// Returns whether clients may authenticate with this method. A server that lists no methods
    /// accepts any.
    pub fn accepts_client_auth(&self, method: &str) -> bool {
        let named = &self.token_endpoint_auth_methods_supported;
        named.as_ref().is_none_or(|methods| methods.iter().any(|known| known == method))
    }

    /// Returns whether the server issues refresh tokens. A server that lists no grant types may
    /// issue them.
    pub(crate) fn refreshes(&self) -> bool {
        let named = &self.grant_types_supported;
        named.as_ref().is_none_or(|grants| grants.iter().any(|known| known == "refresh_token"))
    }
}

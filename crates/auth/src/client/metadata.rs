//! What servers publish about themselves: RFC 9728, RFC 8414, OpenID Connect Discovery.

use serde::Deserialize;

/// Of a protected resource. Only what is used.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ResourceMetadata {
    /// Whom it is about, as it is written: it goes to the authorization server byte for byte.
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(super) dpop_bound_access_tokens_required: bool,
}

/// Metadata of an authorization server, as far as it is used here.
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
    /// Whether nothing was published and this is what the first revision with authorization says.
    #[serde(skip)]
    pub(crate) is_assumed: bool,
}

impl ServerMetadata {
    /// What a server that publishes nothing is taken to have.
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

    /// Returns whether clients may authenticate with this method. A server that lists none accepts any.
    pub fn accepts_client_auth(&self, method: &str) -> bool {
        let named = &self.token_endpoint_auth_methods_supported;
        named.as_ref().is_none_or(|methods| methods.iter().any(|known| known == method))
    }

    /// Whether it gives refresh tokens, as far as it says.
    pub(crate) fn refreshes(&self) -> bool {
        let named = &self.grant_types_supported;
        named.as_ref().is_none_or(|grants| grants.iter().any(|known| known == "refresh_token"))
    }
}

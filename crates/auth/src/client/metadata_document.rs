//! Client ID metadata document, which a program publishes about itself.
//!
//! The URL of the document is the client ID at every authorization server that supports such
//! documents, so the program needs no registration.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration>

use serde::Serialize;
use serde_json::value::RawValue;

use super::registration::Method;
use crate::jose::JwkSet;

/// A client ID metadata document. Publish its JSON unchanged.
///
/// ```
/// use outlive_auth::{
///     client::{ClientMetadataDocument, OAuth},
///     jose::{Algorithm, JwkSet, SigningKey},
/// };
///
/// const URL: &str = "https://app.example.com/client.json";
/// let key = SigningKey::generate(Algorithm::Es256)?.with_id("2026");
/// let json = ClientMetadataDocument::new(URL, "App")
///     .redirect_uri("http://127.0.0.1/callback")
///     .keys(&JwkSet::new([key.public()]))
///     .to_json();
/// // Publish `json` at URL. The client authenticates with its key.
/// let oauth = OAuth::builder("https://example.com/mcp")
///     .client_metadata_url(URL)
///     .client_metadata_key(key)
///     .build();
/// # Ok::<(), outlive_auth::jose::KeyError>(())
/// ```
#[derive(Clone, Debug, Serialize)]
#[must_use]
pub struct ClientMetadataDocument {
    client_id: String,
    client_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_uri: Option<String>,
    redirect_uris: Vec<String>,
    grant_types: Vec<&'static str>,
    response_types: Vec<&'static str>,
    token_endpoint_auth_method: Method,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwks: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwks_uri: Option<String>,
}

impl ClientMetadataDocument {
    /// Creates a document for a program, to be published at this `https:` URL.
    ///
    /// Without keys, any program can use the client ID, and only the redirect URIs protect logins.
    pub fn new(url: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            client_id: url.into(),
            client_name: name.into(),
            client_uri: None,
            redirect_uris: Vec::new(),
            grant_types: vec!["authorization_code", "refresh_token"],
            response_types: vec!["code"],
            token_endpoint_auth_method: Method::None,
            jwks: None,
            jwks_uri: None,
        }
    }

    /// Adds a redirect URI. For a program on the user's machine, that is
    /// `http://127.0.0.1/callback`; authorization servers ignore the port.
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uris.push(uri.into());
        self
    }

    /// Sets the URL of a page about the program.
    pub fn page(mut self, url: impl Into<String>) -> Self {
        self.client_uri = Some(url.into());
        self
    }

    /// Sets the public keys with which the program authenticates (`private_key_jwt`).
    pub fn keys(mut self, keys: &JwkSet) -> Self {
        self.token_endpoint_auth_method = Method::Key;
        self.jwks_uri = None;
        self.jwks = RawValue::from_string(keys.to_json()).ok();
        self
    }

    /// Sets the URL of the public keys, for keys that change more often than the document.
    pub fn keys_at(mut self, url: impl Into<String>) -> Self {
        self.token_endpoint_auth_method = Method::Key;
        self.jwks = None;
        self.jwks_uri = Some(url.into());
        self
    }

    /// Returns the document as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("strings always serialize")
    }
}

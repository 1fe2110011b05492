//! Client registration at an authorization server, and client authentication.
//!
//! A client that was registered in advance has precedence over one with a metadata document, which
//! has precedence over dynamic registration.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration>

use http::{HeaderMap, StatusCode};
use outlive_transport::client::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    error::{NO_CODE, OAuthError, OAuthErrorResponse, OAuthRequest},
    metadata::ServerMetadata,
    url::Place,
};
use crate::fetch::{Fetcher, is_loopback_host};

/// A client that is registered with an authorization server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registered {
    pub(super) id: String,
    pub(super) secret: Option<SecretString>,
    pub(super) method: Method,
    /// Redirect URI of a dynamic registration.
    pub(super) redirect_uri: Option<String>,
    /// Expiry of the client secret in Unix seconds. 0 if the secret does not expire.
    pub(super) secret_expires: u64,
    pub(super) by: By,
}

/// Kind of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Registered in advance by an operator.
    Hand,
    /// Described by a client ID metadata document.
    Document,
    /// Registered dynamically by the client.
    Itself,
}

/// Client authentication method at the token endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Method {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    Key,
}

impl Method {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::Key => "private_key_jwt",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post, Self::Key].into_iter().find(|it| it.as_str() == text)
    }

    /// Returns the first of these methods that the server accepts.
    pub(super) fn choose(server: &ServerMetadata, wanted: &[Self]) -> Result<Self, OAuthError> {
        let found =
            wanted.iter().copied().find(|method| server.accepts_client_auth(method.as_str()));
        found.ok_or_else(|| OAuthError::Unsuitable {
            issuer: server.issuer.clone(),
            lacks: "accepts none of the authentication methods of this client; configure a secret or a key",
        })
    }
}

impl Registered {
    /// Registers a client dynamically (RFC 7591).
    pub(super) async fn register(
        fetch: &Fetcher,
        server: &ServerMetadata,
        name: &str,
        redirect_uri: &str,
        with_dpop: bool,
    ) -> Result<Self, OAuthError> {
        let missing = || OAuthError::NoRegistration { issuer: server.issuer.clone() };
        let endpoint = server.registration_endpoint.as_deref().ok_or_else(missing)?;
        let asked = Method::choose(server, &[Method::None, Method::Basic, Method::Post])?;
        let request = Request {
            client_name: name,
            redirect_uris: [redirect_uri],
            grant_types: ["authorization_code", "refresh_token"],
            response_types: ["code"],
            application_type: application_type(redirect_uri),
            token_endpoint_auth_method: asked.as_str(),
            dpop_bound_access_tokens: with_dpop,
        };
        let fetched = fetch.post_json(endpoint, HeaderMap::new(), &request).await?;
        match fetched.status {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => return Err(missing()),
            status if status.is_server_error() => return Err(fetched.status_error().into()),
            _ => {
                let said: Refused = serde_json::from_slice(&fetched.body).unwrap_or_default();
                let code = said.error.as_deref().unwrap_or(NO_CODE);
                let response = OAuthErrorResponse::new(code, said.error_description.as_deref());
                return Err(OAuthError::Refused { request: OAuthRequest::Registration, response });
            }
        }
        let response: Response = fetched.json()?;
        let named = response.token_endpoint_auth_method.as_deref();
        Ok(Self {
            id: response.client_id,
            secret: response.client_secret.map(SecretString::new),
            // A server that does not return the method has accepted the requested one.
            method: named.and_then(Method::parse).unwrap_or(asked),
            redirect_uri: Some(redirect_uri.to_owned()),
            secret_expires: response.client_secret_expires_at.unwrap_or(0),
            by: By::Itself,
        })
    }

    /// Serializes the registration for the store.
    pub(super) fn write(&self) -> SecretString {
        let kept = Kept {
            client_id: self.id.clone(),
            client_secret: self.secret.as_ref().map(|secret| secret.expose().to_owned()),
            method: self.method,
            redirect_uri: self.redirect_uri.clone(),
            secret_expires: self.secret_expires,
        };
        SecretString::new(serde_json::to_string(&kept).unwrap_or_default())
    }

    /// Reads a stored dynamic registration. Returns `None` if it is invalid, so that the client
    /// registers again.
    pub(super) fn read(kept: &SecretString) -> Option<Self> {
        let kept: Kept = serde_json::from_str(kept.expose()).ok()?;
        Some(Self {
            id: kept.client_id,
            secret: kept.client_secret.map(SecretString::new),
            method: kept.method,
            redirect_uri: kept.redirect_uri,
            secret_expires: kept.secret_expires,
            by: By::Itself,
        })
    }
}

/// Returns `native` for a loopback redirect URI and `web` for a remote one.
fn application_type(redirect_uri: &str) -> &'static str {
    match Place::parse(redirect_uri) {
        Some(place) if !is_loopback_host(place.host()) => "web",
        _ => "native",
    }
}

#[derive(Serialize)]
struct Request<'a> {
    client_name: &'a str,
    redirect_uris: [&'a str; 1],
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    application_type: &'static str,
    token_endpoint_auth_method: &'static str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dpop_bound_access_tokens: bool,
}

#[derive(Deserialize)]
struct Response {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

#[derive(Default, Deserialize)]
struct Refused {
    error: Option<String>,
    error_description: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    client_id: String,
    client_secret: Option<String>,
    method: Method,
    redirect_uri: Option<String>,
    #[serde(default)]
    secret_expires: u64,
}

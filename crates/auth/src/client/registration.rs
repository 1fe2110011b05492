//! Who the client is to an authorization server, and how it shows that.
//!
//! A client that was registered by hand comes first, then one that publishes a document about itself,
//! then one that registers itself.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization/client-registration>

use http::{HeaderMap, StatusCode};
use outlive_transport::client::SecretString;
use serde::{Deserialize, Serialize};

use super::{
    error::{OAuthError, OAuthErrorResponse},
    metadata::ServerMetadata,
    url::Place,
};
use crate::fetch::{Fetcher, is_loopback_host};

/// A client as an authorization server knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Registered {
    pub(super) id: String,
    pub(super) secret: Option<SecretString>,
    pub(super) method: Method,
    /// Where its logins come back to, if it registered itself with that.
    pub(super) redirect_uri: Option<String>,
    /// When its secret expires, in seconds; 0 if it does not.
    pub(super) secret_expires: u64,
    pub(super) by: By,
}

/// How it came to be known there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Somebody has registered it.
    Hand,
    /// It has a document about itself.
    Document,
    /// It has registered itself.
    Itself,
}

/// How a client shows that it is the one, at the token endpoint.
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

    /// The first of these that the server takes.
    pub(super) fn choose(server: &ServerMetadata, wanted: &[Self]) -> Result<Self, OAuthError> {
        let found =
            wanted.iter().copied().find(|method| server.accepts_client_auth(method.as_str()));
        found.ok_or_else(|| OAuthError::Unsuitable {
            issuer: server.issuer.clone(),
            lacks: "takes none of the ways in which this client can authenticate; configure a secret or a key",
        })
    }
}

impl Registered {
    /// A client that registers itself.
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
            status if status.is_server_error() => return Err(fetched.refusal().into()),
            _ => {
                let said: Refused = serde_json::from_slice(&fetched.body).unwrap_or_default();
                let code = said.error.as_deref().unwrap_or("no reason given");
                let refusal = OAuthErrorResponse::new(code, said.error_description.as_deref());
                return Err(OAuthError::Refused { what: "the registration", refusal });
            }
        }
        let response: Response = fetched.json()?;
        let named = response.token_endpoint_auth_method.as_deref();
        Ok(Self {
            id: response.client_id,
            secret: response.client_secret.map(SecretString::new),
            // Whoever does not say has taken what was asked for.
            method: named.and_then(Method::parse).unwrap_or(asked),
            redirect_uri: Some(redirect_uri.to_owned()),
            secret_expires: response.client_secret_expires_at.unwrap_or(0),
            by: By::Itself,
        })
    }

    /// As it is kept.
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

    /// Reads one that registered itself; `None` if it cannot be read, and has to do so again.
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

/// Programs on a machine are `native`; what a remote site redirects to is `web`.
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

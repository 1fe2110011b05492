//! Token requests: a form with client authentication and, for bound tokens, a DPoP proof.

use std::time::{Duration, SystemTime};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use outlive_transport::client::SecretString;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    dpop::{Prover, seconds},
    error::{OAuthError, OAuthErrorResponse, OAuthRequest},
    random::random,
    registration::{Method, Registered},
};
use crate::{
    fetch::{FetchResponse, Fetcher, form},
    jose::SigningKey,
};

const DPOP: HeaderName = HeaderName::from_static("dpop");
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Lifetime of a client assertion.
const ASSERTED: Duration = Duration::from_secs(60);

/// A token endpoint, and the client that uses it.
pub(super) struct TokenEndpoint<'a> {
    pub(super) fetch: &'a Fetcher,
    pub(super) url: &'a str,
    /// Audience of the client assertion.
    pub(super) issuer: &'a str,
    pub(super) client: &'a Registered,
    pub(super) key: Option<&'a SigningKey>,
    pub(super) prover: Option<&'a Prover>,
    pub(super) now: SystemTime,
}

/// Form fields: names and values. Values may be secrets.
pub(super) type Fields<'a> = Vec<(&'a str, String)>;

/// Token response.
#[derive(Deserialize)]
pub(super) struct Given {
    #[serde(deserialize_with = "secret")]
    pub(super) access_token: SecretString,
    #[serde(default)]
    pub(super) token_type: String,
    #[serde(default, deserialize_with = "lenient")]
    pub(super) expires_in: Option<u64>,
    #[serde(default, deserialize_with = "maybe_secret")]
    pub(super) refresh_token: Option<SecretString>,
    pub(super) scope: Option<String>,
    pub(super) issued_token_type: Option<String>,
}

impl TokenEndpoint<'_> {
    /// Requests a token.
    pub(super) async fn ask(
        &self,
        request: OAuthRequest,
        fields: Fields<'_>,
    ) -> Result<Given, OAuthError> {
        Ok(self.send(request, fields).await?.json()?)
    }

    /// Sends a form and returns a successful response. Retries once if the server requires a nonce.
    pub(super) async fn send(
        &self,
        request: OAuthRequest,
        asked: Fields<'_>,
    ) -> Result<FetchResponse, OAuthError> {
        let mut has_nonce = false;
        loop {
            // Each attempt has a new client assertion, because an assertion is valid once.
            let (mut fields, mut headers) = (asked.clone(), HeaderMap::new());
            self.authenticate(&mut fields, &mut headers)?;
            if let Some(prover) = self.prover {
                let proof = prover.prove("POST", self.url, None, self.now)?;
                headers.insert(DPOP, sensitive(&proof)?);
            }
            let pairs = fields.iter().map(|(name, value)| (*name, value.as_str()));
            let fetched = self.fetch.post_form(self.url, headers, pairs).await?;
            let nonce = fetched.headers.get(DPOP_NONCE).and_then(|it| it.to_str().ok());
            if let (Some(prover), Some(nonce)) = (self.prover, nonce) {
                prover.heard(self.url, nonce);
            }
            if fetched.status.is_success() {
                return Ok(fetched);
            }
            let response = error_response(&fetched, &fields)?;
            let again = response.code == "use_dpop_nonce" && nonce.is_some() && !has_nonce;
            if !again {
                return Err(OAuthError::Refused { request, response });
            }
            has_nonce = true;
        }
    }

    /// Adds the client authentication.
    fn authenticate(
        &self,
        fields: &mut Fields<'_>,
        headers: &mut HeaderMap,
    ) -> Result<(), OAuthError> {
        let id = self.client.id.as_str();
        let secret = self.client.secret.as_ref().map(SecretString::expose);
        match (self.client.method, secret) {
            (Method::Basic, Some(secret)) => {
                let pair = format!("{}:{}", form::escaped(id), form::escaped(secret));
                let value = format!("Basic {}", STANDARD.encode(pair));
                headers.insert(header::AUTHORIZATION, sensitive(&value)?);
            }
            (Method::Post, Some(secret)) => {
                fields.push(("client_id", id.to_owned()));
                fields.push(("client_secret", secret.to_owned()));
            }
            (Method::Key, _) => {
                let key = self.key.ok_or(crate::jose::KeyError::Failed)?;
                fields.push(("client_id", id.to_owned()));
                fields.push(("client_assertion_type", ASSERTION_TYPE.to_owned()));
                fields.push(("client_assertion", self.assertion(key)?));
            }
            (Method::None | Method::Basic | Method::Post, _) => {
                fields.push(("client_id", id.to_owned()));
            }
        }
        Ok(())
    }

    fn assertion(&self, key: &SigningKey) -> Result<String, OAuthError> {
        #[derive(Serialize)]
        struct Claims<'a> {
            iss: &'a str,
            sub: &'a str,
            aud: &'a str,
            jti: String,
            iat: u64,
            exp: u64,
        }
        let claims = Claims {
            iss: &self.client.id,
            sub: &self.client.id,
            aud: self.issuer,
            jti: random(16)?,
            iat: seconds(self.now),
            exp: seconds(self.now + ASSERTED),
        };
        Ok(key.sign("JWT", &claims)?)
    }
}

fn sensitive(value: &str) -> Result<HeaderValue, OAuthError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| {
        OAuthError::Assertion("it has characters that are not allowed in a header".to_owned())
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Parses an error response. A response without an error code is a failure of the server.
fn error_response(
    fetched: &FetchResponse,
    fields: &Fields<'_>,
) -> Result<OAuthErrorResponse, OAuthError> {
    #[derive(Deserialize)]
    struct Said {
        error: String,
        error_description: Option<String>,
    }
    let said: Said = serde_json::from_slice(&fetched.body).map_err(|_| fetched.status_error())?;
    // Some servers echo request fields in the description, and these are secrets.
    let repeats = |text: &String| {
        fields.iter().any(|(_, value)| value.len() >= 8 && text.contains(value.as_str()))
    };
    let description = said.error_description.filter(|text| !repeats(text));
    Ok(OAuthErrorResponse::new(&said.error, description.as_deref()))
}

fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<SecretString, D::Error> {
    String::deserialize(from).map(SecretString::new)
}

fn maybe_secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SecretString>, D::Error> {
    Option::<String>::deserialize(from).map(|it| it.map(SecretString::new))
}

/// Deserializes a number, which may be written as a string or with a fraction.
fn lenient<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(from)?;
    Ok(value.and_then(|value| match value {
        serde_json::Value::Number(number) => number.as_u64().or_else(|| {
            let seconds = number.as_f64()?;
            (seconds >= 0.0)
                .then(|| Duration::try_from_secs_f64(seconds).ok())?
                .map(|it| it.as_secs())
        }),
        serde_json::Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }))
}

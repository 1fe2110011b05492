//! Requests to the identity provider: the login page, token exchange, user data and token refresh.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header};
use outlive_protocol::Clock;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{
    identity::Identity,
    keys::digest,
    provider::{Place, Provider},
    time::seconds,
};
use outlive_auth::{
    client::discover_server,
    fetch::{FetchResponse, Fetcher, form, read_object},
    jose::{Claims, Jws},
};

/// Maximum number of concurrent requests to the provider. Any browser can cause a request; further
/// ones wait.
const AT_ONCE: usize = 32;

/// Time that a request waits for a free slot.
const PATIENCE: Duration = Duration::from_secs(5);

/// Cache time of the provider's metadata.
const FRESH: Duration = Duration::from_secs(3_600);

/// Permitted clock difference to the provider in seconds.
const SKEW: i64 = 30;

/// Client of the identity provider.
pub(super) struct ProviderClient {
    pub(super) settings: Provider,
    fetch: Fetcher,
    gate: Semaphore,
    clock: Arc<dyn Clock>,
    // A std mutex: no code awaits while it is held.
    found: Mutex<Option<(Arc<Endpoints>, Instant)>>,
}

/// Endpoints of the provider.
pub(super) struct Endpoints {
    /// Issuer, if the provider publishes metadata.
    pub(super) issuer: Option<String>,
    pub(super) authorize: String,
    token: String,
    revoke: Option<String>,
    /// Whether the client secret is sent in a header instead of the form.
    basic: bool,
}

/// Tokens of the provider. They are sent only to the provider, to the login store (sealed), and to
/// handlers that request them.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ProviderTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Expiry in Unix seconds. `None` if the provider does not specify it.
    pub(super) until: Option<i64>,
}

/// Reason why a request to the provider failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderError {
    /// The provider rejected the code or the token.
    Refused,
    /// The provider is unavailable, or its response is unusable. The log contains the reason.
    Unavailable,
}

#[derive(Deserialize)]
struct Given {
    #[serde(default)]
    access_token: Option<String>,
    #[serde(default)]
    refresh_token: Option<String>,
    #[serde(default)]
    expires_in: Option<Value>,
    #[serde(default)]
    id_token: Option<String>,
    #[serde(default)]
    error: Option<String>,
}

impl ProviderClient {
    pub(super) fn new(settings: Provider, fetch: Fetcher, clock: Arc<dyn Clock>) -> Self {
        let gate = Semaphore::new(AT_ONCE);
        Self { settings, fetch, gate, clock, found: Mutex::default() }
    }

    /// Checks that all URLs of the provider are allowed.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut urls: Vec<&str> = self.settings.userinfo.as_deref().into_iter().collect();
        match &self.settings.place {
            Place::Issuer(issuer) => urls.push(issuer),
            Place::Known { authorize, token, revoke } => {
                urls.extend([authorize.as_str(), token]);
                urls.extend(revoke.as_deref());
            }
        }
        urls.into_iter()
            .try_for_each(|url| self.fetch.check(url).map_err(|error| error.to_string()))
    }

    /// Returns the host of the login page, to show it to the user.
    pub(super) fn host(&self) -> &str {
        let (Place::Issuer(url) | Place::Known { authorize: url, .. }) = &self.settings.place;
        let after = url.split_once("://").map_or(url.as_str(), |(_, after)| after);
        after.split(['/', '?']).next().unwrap_or(after)
    }

    /// Returns the endpoints of the provider. Fetches its metadata when needed, and caches it.
    pub(super) async fn endpoints(&self) -> Result<Arc<Endpoints>, ProviderError> {
        let issuer = match &self.settings.place {
            Place::Issuer(issuer) => issuer,
            Place::Known { authorize, token, revoke } => {
                let (authorize, token) = (authorize.clone(), token.clone());
                let (issuer, revoke, basic) = (None, revoke.clone(), false);
                return Ok(Arc::new(Endpoints { issuer, authorize, token, revoke, basic }));
            }
        };
        let now = self.clock.now();
        let known = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((endpoints, at)) = &known
            && now.saturating_duration_since(*at) < FRESH
        {
            return Ok(Arc::clone(endpoints));
        }
        let _permit = self.permit().await?;
        let found = discover_server(&self.fetch, issuer).await.map_err(|error| error.to_string());
        let found = found.and_then(|found| {
            let basic = found.accepts_client_auth("client_secret_basic");
            let missing = || "its metadata has no authorization or token endpoint".to_owned();
            let authorize = found.authorization_endpoint.ok_or_else(missing)?;
            // Browsers are redirected to this URL: require TLS, and reject `javascript:`.
            self.fetch.check(&authorize).map_err(|error| error.to_string())?;
            Ok(Arc::new(Endpoints {
                issuer: Some(found.issuer),
                authorize,
                token: found.token_endpoint.ok_or_else(missing)?,
                revoke: found.revocation_endpoint,
                basic,
            }))
        });
        match (found, known) {
            (Ok(found), _) => {
                let newer = Some((Arc::clone(&found), now));
                *self.found.lock().unwrap_or_else(PoisonError::into_inner) = newer;
                Ok(found)
            }
            (Err(error), known) => {
                tracing::warn!(issuer, error, "fetching the metadata of the provider failed");
                known.map(|(endpoints, _)| endpoints).ok_or(ProviderError::Unavailable)
            }
        }
    }

    /// Returns the URL of the login page.
    pub(super) async fn login_page(
        &self,
        callback: &str,
        state: &str,
        verifier: &str,
        nonce: &str,
    ) -> Result<String, ProviderError> {
        let endpoints = self.endpoints().await?;
        let (scopes, challenge) = (self.settings.scopes.join(" "), digest(verifier));
        let mut query = vec![
            ("response_type", "code"),
            ("client_id", &self.settings.client_id),
            ("redirect_uri", callback),
            ("state", state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        if !scopes.is_empty() {
            query.push(("scope", &scopes));
        }
        if self.settings.userinfo.is_none() {
            query.push(("nonce", nonce));
        }
        let more = self.settings.parameters.iter();
        query.extend(more.map(|(name, value)| (name.as_str(), value.as_str())));
        let separator = if endpoints.authorize.contains('?') { '&' } else { '?' };
        Ok(format!("{}{separator}{}", endpoints.authorize, form::encode(query)))
    }

    /// Exchanges a code for tokens, and reads the identity of the user.
    pub(super) async fn exchange(
        &self,
        callback: &str,
        code: &str,
        verifier: &str,
        nonce: &str,
    ) -> Result<(ProviderTokens, Identity), ProviderError> {
        let endpoints = self.endpoints().await?;
        let _permit = self.permit().await?;
        let fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback),
            ("code_verifier", verifier),
        ];
        let (tokens, id_token) = self.ask(&endpoints, fields).await?;
        let claims = match &self.settings.userinfo {
            Some(url) => self.userinfo(url, &tokens.access).await?,
            None => self.id_token(&endpoints, id_token.as_deref(), nonce)?,
        };
        let identity = Identity::from_claims(&self.settings, claims);
        let identity = identity
            .ok_or_else(|| unusable("the response does not contain the user ID or the tenant"))?;
        Ok((tokens, identity))
    }

    /// Refreshes tokens. Returns `Refused` if the provider rejects the refresh token.
    pub(super) async fn renew(&self, refresh: &str) -> Result<ProviderTokens, ProviderError> {
        let endpoints = self.endpoints().await?;
        let _permit = self.permit().await?;
        let fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh)];
        let (mut tokens, _) = self.ask(&endpoints, fields).await?;
        tokens.refresh.get_or_insert_with(|| refresh.to_owned());
        Ok(tokens)
    }

    /// Revokes tokens at the provider. Failures are only logged.
    pub(super) async fn revoke(&self, tokens: &ProviderTokens) {
        let Ok(endpoints) = self.endpoints().await else { return };
        let (Some(url), Ok(_permit)) = (&endpoints.revoke, self.permit().await) else { return };
        let token = tokens.refresh.as_deref().unwrap_or(&tokens.access);
        let mut fields = vec![("token", token)];
        let headers = self.authenticate(&endpoints, &mut fields);
        match self.fetch.post_form(url, headers, fields).await {
            Ok(fetched) if fetched.status.is_success() => {}
            Ok(fetched) => {
                tracing::warn!(error = %fetched.status_error(), "revoking a token failed")
            }
            Err(error) => tracing::warn!(%error, "revoking a token failed"),
        }
    }

    async fn ask<'a>(
        &'a self,
        endpoints: &Endpoints,
        mut fields: Vec<(&'a str, &'a str)>,
    ) -> Result<(ProviderTokens, Option<String>), ProviderError> {
        let headers = self.authenticate(endpoints, &mut fields);
        let fetched = self.fetch.post_form(&endpoints.token, headers, fields).await;
        let fetched = fetched.map_err(unusable)?;
        let given: Option<Given> = read_object(&fetched.body);
        match given {
            // Some providers send errors with a success status.
            Some(Given { error: Some(error), .. }) => Err(refused(&error)),
            Some(Given {
                access_token: Some(access), refresh_token, expires_in, id_token, ..
            }) if fetched.status.is_success() => {
                let seconds = expires_in.and_then(|value| match value {
                    Value::String(text) => text.parse().ok(),
                    value => value.as_i64(),
                });
                let until = seconds.map(|seconds| self.now().saturating_add(seconds));
                Ok((ProviderTokens { access, refresh: refresh_token, until }, id_token))
            }
            _ => Err(unusable(fetched.status_error())),
        }
    }

    /// Adds the client authentication.
    fn authenticate<'a>(
        &'a self,
        endpoints: &Endpoints,
        fields: &mut Vec<(&'a str, &'a str)>,
    ) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let id = self.settings.client_id.as_str();
        let secret = self.settings.secret.as_ref().map(|secret| secret.expose());
        match secret {
            Some(secret) if endpoints.basic => {
                let pair = format!("{}:{}", form::escaped(id), form::escaped(secret));
                put(&mut headers, &format!("Basic {}", STANDARD.encode(pair)));
            }
            secret => {
                fields.push(("client_id", id));
                fields.extend(secret.map(|secret| ("client_secret", secret)));
            }
        }
        headers
    }

    async fn userinfo(&self, url: &str, token: &str) -> Result<Map<String, Value>, ProviderError> {
        let mut headers = HeaderMap::new();
        put(&mut headers, &format!("Bearer {token}"));
        // Some providers reject requests without a user agent.
        headers.insert(header::USER_AGENT, HeaderValue::from_static("outlive"));
        let fetched = self.fetch.get(url, headers).await.map_err(unusable)?;
        read(&fetched)
    }

    /// Returns the claims of an ID token. It comes directly from the provider over TLS, which
    /// replaces the check of its signature (OpenID Connect Core 3.1.3.7).
    fn id_token(
        &self,
        endpoints: &Endpoints,
        token: Option<&str>,
        nonce: &str,
    ) -> Result<Map<String, Value>, ProviderError> {
        let token = token.ok_or_else(|| unusable("the response has no ID token"))?;
        let jws = Jws::parse(token).map_err(unusable)?;
        let said = jws.unverified();
        let claims: Map<String, Value> =
            read_object(said).ok_or_else(|| unusable("the ID token has no claims"))?;
        let known = Claims::read(said).ok_or_else(|| unusable("the ID token is malformed"))?;
        let of_this_login = claims.get("nonce").and_then(Value::as_str) == Some(nonce);
        let of_this_issuer =
            endpoints.issuer.is_none() || known.iss.as_deref() == endpoints.issuer.as_deref();
        let is_valid = known.exp.is_some_and(|exp| self.now() < exp.saturating_add(SKEW));
        let for_us = known.aud.contains(&self.settings.client_id);
        match of_this_login && of_this_issuer && is_valid && for_us {
            true => Ok(claims),
            false => Err(unusable("the ID token is for another login, issuer, client or time")),
        }
    }

    /// Waits for a request slot.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, ProviderError> {
        let permit = tokio::time::timeout(PATIENCE, self.gate.acquire()).await;
        permit
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| unusable("too many requests are in progress"))
    }

    fn now(&self) -> i64 {
        seconds(&*self.clock)
    }
}

fn read(fetched: &FetchResponse) -> Result<Map<String, Value>, ProviderError> {
    match read_object(&fetched.body) {
        Some(claims) if fetched.status.is_success() => Ok(claims),
        _ => Err(unusable(fetched.status_error())),
    }
}

/// Maps an error code of the provider. Only these codes concern the token; other errors concern the
/// proxy and do not end a login.
fn refused(error: &str) -> ProviderError {
    match error {
        "invalid_grant" | "bad_verification_code" | "bad_refresh_token" => ProviderError::Refused,
        _ => unusable(format_args!("the provider returned the error {}", error.escape_debug())),
    }
}

fn unusable(why: impl fmt::Display) -> ProviderError {
    tracing::warn!(error = %why, "request to the identity provider failed");
    ProviderError::Unavailable
}

fn put(headers: &mut HeaderMap, authorization: &str) {
    if let Ok(mut value) = HeaderValue::from_str(authorization) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
}

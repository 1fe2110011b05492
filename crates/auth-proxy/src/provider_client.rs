//! All that is said to the identity provider: where people log in, what a code is worth, who it was,
//! and new tokens for old ones.

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

/// Requests to the provider that are out at once. Anybody can cause one; more wait.
const AT_ONCE: usize = 32;

/// How long they wait.
const PATIENCE: Duration = Duration::from_secs(5);

/// For how long what a provider publishes about itself is taken for true.
const FRESH: Duration = Duration::from_secs(3_600);

/// How far the provider's clock may be from ours, in seconds.
const SKEW: i64 = 30;

/// The identity provider.
pub(super) struct ProviderClient {
    pub(super) settings: Provider,
    fetch: Fetcher,
    gate: Semaphore,
    clock: Arc<dyn Clock>,
    // A std mutex: nothing awaits while it is held.
    found: Mutex<Option<(Arc<Endpoints>, Instant)>>,
}

/// Where what is.
pub(super) struct Endpoints {
    /// Its name, if it has published one.
    pub(super) issuer: Option<String>,
    pub(super) authorize: String,
    token: String,
    revoke: Option<String>,
    /// Whether the client's secret goes into a header, rather than into the form.
    basic: bool,
}

/// The provider's tokens. They leave this process for the provider, for the login store (sealed), and for
/// handlers whose author has asked for them: there is no other way to see one.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct ProviderTokens {
    pub(super) access: String,
    pub(super) refresh: Option<String>,
    /// Until when, in seconds since 1970; for ever if the provider does not say.
    pub(super) until: Option<i64>,
}

/// Why there is nothing from the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProviderError {
    /// It has said no: the code or the token is none of its own, or not any more.
    Refused,
    /// It could not be asked, or its answer could not be used. The log says why.
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

    /// Whether all of its addresses may be asked.
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

    /// The host at which people log in, to be told to them.
    pub(super) fn host(&self) -> &str {
        let (Place::Issuer(url) | Place::Known { authorize: url, .. }) = &self.settings.place;
        let after = url.split_once("://").map_or(url.as_str(), |(_, after)| after);
        after.split(['/', '?']).next().unwrap_or(after)
    }

    /// Where the provider is. What it publishes is read when it is first needed, and now and then.
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
            let missing = || "its metadata names no place to log in or to get tokens".to_owned();
            let authorize = found.authorization_endpoint.ok_or_else(missing)?;
            // People are sent there: over TLS, and to no `javascript:`.
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
                tracing::warn!(issuer, error, "could not find out where the provider is");
                known.map(|(endpoints, _)| endpoints).ok_or(ProviderError::Unavailable)
            }
        }
    }

    /// The address at which somebody logs in.
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

    /// Swaps a code for tokens, and finds out who it was.
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
        let identity = identity.ok_or_else(|| unusable("it does not say who has logged in"))?;
        Ok((tokens, identity))
    }

    /// New tokens for old ones. `Refused` if the provider says that they are worth nothing any more.
    pub(super) async fn renew(&self, refresh: &str) -> Result<ProviderTokens, ProviderError> {
        let endpoints = self.endpoints().await?;
        let _permit = self.permit().await?;
        let fields = vec![("grant_type", "refresh_token"), ("refresh_token", refresh)];
        let (mut tokens, _) = self.ask(&endpoints, fields).await?;
        tokens.refresh.get_or_insert_with(|| refresh.to_owned());
        Ok(tokens)
    }

    /// Tells the provider that its tokens are not needed any more. Nothing depends on it.
    pub(super) async fn revoke(&self, tokens: &ProviderTokens) {
        let Ok(endpoints) = self.endpoints().await else { return };
        let (Some(url), Ok(_permit)) = (&endpoints.revoke, self.permit().await) else { return };
        let token = tokens.refresh.as_deref().unwrap_or(&tokens.access);
        let mut fields = vec![("token", token)];
        let headers = self.authenticate(&endpoints, &mut fields);
        match self.fetch.post_form(url, headers, fields).await {
            Ok(fetched) if fetched.status.is_success() => {}
            Ok(fetched) => tracing::warn!(error = %fetched.refusal(), "a token was not revoked"),
            Err(error) => tracing::warn!(%error, "a token was not revoked"),
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
            // Some say so with a status of success.
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
            _ => Err(unusable(fetched.refusal())),
        }
    }

    /// Shows which client is asking.
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
        // Some answer nobody who has no name.
        headers.insert(header::USER_AGENT, HeaderValue::from_static("outlive"));
        let fetched = self.fetch.get(url, headers).await.map_err(unusable)?;
        read(&fetched)
    }

    /// What an ID token says. It has come straight from the provider, over TLS, which vouches for it as
    /// well as its signature would (OpenID Connect Core 3.1.3.7).
    fn id_token(
        &self,
        endpoints: &Endpoints,
        token: Option<&str>,
        nonce: &str,
    ) -> Result<Map<String, Value>, ProviderError> {
        let token = token.ok_or_else(|| unusable("it has sent no ID token"))?;
        let jws = Jws::parse(token).map_err(unusable)?;
        let said = jws.unverified();
        let claims: Map<String, Value> = read_object(said).ok_or_else(|| unusable("no claims"))?;
        let known = Claims::read(said).ok_or_else(|| unusable("its ID token cannot be read"))?;
        let of_this_login = claims.get("nonce").and_then(Value::as_str) == Some(nonce);
        let of_this_issuer =
            endpoints.issuer.is_none() || known.iss.as_deref() == endpoints.issuer.as_deref();
        let is_valid = known.exp.is_some_and(|exp| self.now() < exp.saturating_add(SKEW));
        let for_us = known.aud.contains(&self.settings.client_id);
        match of_this_login && of_this_issuer && is_valid && for_us {
            true => Ok(claims),
            false => Err(unusable("its ID token is of another login, issuer, client or time")),
        }
    }

    /// Room for one more request.
    async fn permit(&self) -> Result<SemaphorePermit<'_>, ProviderError> {
        let permit = tokio::time::timeout(PATIENCE, self.gate.acquire()).await;
        permit.ok().and_then(Result::ok).ok_or_else(|| unusable("too many requests are out"))
    }

    fn now(&self) -> i64 {
        seconds(&*self.clock)
    }
}

fn read(fetched: &FetchResponse) -> Result<Map<String, Value>, ProviderError> {
    match read_object(&fetched.body) {
        Some(claims) if fetched.status.is_success() => Ok(claims),
        _ => Err(unusable(fetched.refusal())),
    }
}

/// Its own words for why not. Only these two are about what it was shown; the others are about us, and
/// end nobody's login.
fn refused(error: &str) -> ProviderError {
    match error {
        "invalid_grant" | "bad_verification_code" | "bad_refresh_token" => ProviderError::Refused,
        _ => unusable(format_args!("it has refused: {}", error.escape_debug())),
    }
}

fn unusable(why: impl fmt::Display) -> ProviderError {
    tracing::warn!(error = %why, "the identity provider cannot be used");
    ProviderError::Unavailable
}

fn put(headers: &mut HeaderMap, authorization: &str) {
    if let Ok(mut value) = HeaderValue::from_str(authorization) {
        value.set_sensitive(true);
        headers.insert(header::AUTHORIZATION, value);
    }
}

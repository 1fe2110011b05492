//! Token source: provides tokens for requests, and handles rejected requests.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, SystemTime},
};

use http::{Method, StatusCode};
use outlive_transport::client::{
    Challenge, SecretString, Token, TokenError, TokenRequest, TokenResponse, TokenSource,
};
use tokio::sync::OnceCell;

use super::{
    error::OAuthError, grant::Grant, metadata::ServerMetadata, scopes::Scopes, settings::Settings,
    token::Held, url::Place,
};
use crate::fetch::{Fetcher, NetworkPolicy, is_loopback_host};

/// Maximum number of retries per request for more scopes or another nonce.
const STEPS: u32 = 3;

/// An OAuth client for one MCP server. Clones share their tokens.
///
/// Pass it to `ClientBuilder::token_source`. See the [module](super) for details.
#[derive(Clone)]
pub struct OAuth(Arc<Source>);

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("server", &self.0.settings.server).finish_non_exhaustive()
    }
}

/// Details of a login.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginInfo {
    /// Authorization server.
    pub issuer: String,
    /// Client ID at the authorization server.
    pub client_id: String,
    /// Scopes of the token.
    pub scopes: Vec<String>,
    /// Expiry of the token, if the server specified it.
    pub expires: Option<SystemTime>,
    /// Whether the token can be refreshed without a login.
    pub renewable: bool,
    /// Whether the token is bound to a key (DPoP).
    pub bound: bool,
}

impl OAuth {
    pub(super) fn new(settings: Settings) -> Self {
        let server = Place::parse(&settings.server);
        Self(Arc::new(Source {
            server,
            settings,
            fetch: OnceCell::new(),
            state: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
        }))
    }

    pub(super) fn source(&self) -> &Source {
        &self.0
    }

    /// Returns the protocol extension of the configured grant, for the client's capabilities.
    pub fn extension(&self) -> Option<&'static str> {
        match &self.0.settings.grant {
            Grant::ClientCredentials => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Grant::Enterprise(_) => {
                Some("io.modelcontextprotocol/enterprise-managed-authorization")
            }
            Grant::Code | Grant::Workload(_) | Grant::Exchange(_) => None,
        }
    }

    /// Logs in, even if a token is present.
    ///
    /// # Errors
    ///
    /// Returns an error if no token could be acquired.
    pub async fn login(&self) -> Result<LoginInfo, OAuthError> {
        self.0.renew(Why::login()).await?;
        let server = self.0.settings.server.clone();
        self.login_info().await?.ok_or(OAuthError::LoginRequired { server })
    }

    /// Deletes the tokens, and revokes them if the authorization server supports that. Returns
    /// whether there were tokens.
    ///
    /// # Errors
    ///
    /// Returns an error if the tokens may still be stored.
    pub async fn logout(&self) -> Result<bool, OAuthError> {
        self.0.log_out().await
    }

    /// Returns details of the current login, or `None` if no token is present.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    pub async fn login_info(&self) -> Result<Option<LoginInfo>, OAuthError> {
        Ok(self.0.held().await?.map(|held| LoginInfo {
            issuer: held.issuer.clone(),
            client_id: held.client_id.clone(),
            scopes: held.scopes().iter().map(str::to_owned).collect(),
            expires: held.expires.map(|at| SystemTime::UNIX_EPOCH + Duration::from_secs(at)),
            renewable: held.refresh.is_some(),
            bound: held.prover.is_some(),
        }))
    }
}

impl TokenSource for OAuth {
    async fn token(&self, request: &TokenRequest<'_>) -> Result<Option<Token>, TokenError> {
        self.0.token(request).await.map_err(TokenError::new)
    }

    async fn answered(&self, answer: &TokenResponse<'_>) -> Result<bool, TokenError> {
        self.0.answered(answer).await.map_err(TokenError::new)
    }
}

/// State that clones share.
pub(super) struct Source {
    pub(super) settings: Settings,
    /// Parsed URL of the MCP server. `None` if the URL is invalid; connecting then reports the
    /// error.
    pub(super) server: Option<Place>,
    fetch: OnceCell<Fetcher>,
    // A std mutex: no code awaits while it is held.
    state: Mutex<State>,
    /// Serializes token requests. Held while a token is acquired.
    pub(super) gate: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    is_loaded: bool,
    held: Option<Arc<Held>>,
    /// Cached metadata of the authorization server.
    server: Option<ServerMetadata>,
    /// Authorization server that the configured client belongs to.
    bound: Option<String>,
    /// Number of completed attempts to acquire a token, and the error of the last one.
    finished: u64,
    last: Option<OAuthError>,
}

/// Reason for acquiring a token.
#[derive(Clone, Debug, Default)]
pub(super) struct Why {
    /// Token that was rejected or expires soon.
    pub(super) refused: Option<SecretString>,
    /// URL of the resource metadata in the challenge.
    pub(super) metadata: Option<String>,
    /// Scopes that the challenge requires.
    pub(super) scopes: Option<Scopes>,
    /// Whether the server requires tokens that are bound to a key.
    pub(super) dpop: bool,
    /// Whether to fail instead of asking the user to log in. Set for streams and for ending a
    /// session.
    pub(super) is_quiet: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// The token is missing or was rejected.
    #[default]
    Refused,
    /// The token lacks scopes.
    StepUp,
    /// The token expires soon.
    Expiring,
    /// The token is missing or expires soon, and no user is needed to acquire another one.
    Unrequested,
    /// The application requested a login.
    Login,
}

impl Why {
    pub(super) fn login() -> Self {
        Self { kind: Kind::Login, ..Self::default() }
    }

    pub(super) fn expiring(held: &Held) -> Self {
        Self { refused: Some(held.token.clone()), kind: Kind::Expiring, ..Self::default() }
    }

    pub(super) fn unrequested(held: Option<&Held>) -> Self {
        let refused = held.map(|held| held.token.clone());
        Self { refused, kind: Kind::Unrequested, ..Self::default() }
    }

    fn challenged(answer: &TokenResponse<'_>, challenges: &[Challenge], kind: Kind) -> Self {
        Self {
            refused: answer.token.map(|token| token.value().clone()),
            is_quiet: answer.request.method != Method::POST,
            kind,
            ..Self::default()
        }
        .with(challenges)
    }

    /// Adds the requirements of the server.
    pub(super) fn with(self, challenges: &[Challenge]) -> Self {
        let get = |name: &str| challenges.iter().find_map(|challenge| challenge.get(name));
        Self {
            metadata: get("resource_metadata").map(str::to_owned),
            scopes: get("scope").map(Scopes::parse).filter(|scopes| !scopes.is_empty()),
            // If the server also accepts bearer tokens, DPoP is not required.
            dpop: challenges.iter().any(|it| it.is("DPoP"))
                && !challenges.iter().any(|it| it.is("Bearer")),
            ..self
        }
    }
}

impl Source {
    async fn token(
        self: &Arc<Self>,
        request: &TokenRequest<'_>,
    ) -> Result<Option<Token>, OAuthError> {
        // The token is valid only for the configured server.
        if !self.is_for(request.url) {
            return Ok(None);
        }
        let held = match self.settings.token_required {
            true => self.required().await?,
            false => match self.available().await? {
                Some(held) => held,
                None => return Ok(None),
            },
        };
        self.secure()?;
        let (token, now) = (held.token.clone(), self.now());
        Ok(Some(match &held.prover {
            None => Token::bearer(token),
            Some(prover) => {
                let method = request.method.as_str();
                let proof = prover.prove(method, request.url, Some(token.expose()), now)?;
                Token::dpop(token, proof)
            }
        }))
    }

    async fn answered(self: &Arc<Self>, answer: &TokenResponse<'_>) -> Result<bool, OAuthError> {
        if !self.is_for(answer.request.url) {
            return Ok(false);
        }
        let held = self.current();
        let prover = held.as_ref().and_then(|held| held.prover.as_ref());
        let has_nonce = match (prover, answer.dpop_nonce()) {
            (Some(prover), Some(nonce)) => {
                prover.heard(answer.request.url, nonce);
                true
            }
            _ => false,
        };
        let challenges = answer.challenges();
        let says = |error: &str| challenges.iter().any(|it| it.get("error") == Some(error));
        let is_held = match (&held, answer.token) {
            (Some(held), Some(sent)) => held.token == *sent.value(),
            (held, sent) => held.is_none() && sent.is_none(),
        };
        match answer.status {
            // The token is valid; only the nonce was missing.
            StatusCode::UNAUTHORIZED
                if says("use_dpop_nonce") && has_nonce && answer.attempt <= STEPS =>
            {
                Ok(true)
            }
            // Another request has acquired a new token meanwhile.
            StatusCode::UNAUTHORIZED if !is_held && held.is_some() => Ok(true),
            StatusCode::UNAUTHORIZED => {
                if let Some(held) = held.filter(|held| held.is_just_granted(self.now()))
                    && answer.attempt > 1
                {
                    let (server, issuer) = (self.settings.server.clone(), held.issuer.clone());
                    return Err(OAuthError::TokenRefused { server, issuer });
                }
                self.renew(Why::challenged(answer, &challenges, Kind::Refused)).await.map(|()| true)
            }
            StatusCode::FORBIDDEN if says("insufficient_scope") => {
                if !is_held {
                    return Ok(answer.attempt <= STEPS);
                }
                let why = Why::challenged(answer, &challenges, Kind::StepUp);
                let wanted = why.scopes.clone().unwrap_or_default();
                let has_them = held.is_some_and(|held| held.scopes().covers(&wanted));
                if has_them || answer.attempt > STEPS {
                    let (server, scopes) = (self.settings.server.clone(), wanted.to_string());
                    return Err(OAuthError::InsufficientScope { server, scopes });
                }
                self.renew(why).await.map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// Acquires another token. If another request is doing so, waits for its result.
    ///
    /// Runs in a spawned task: if the caller is dropped, the next caller finds the login still
    /// waiting for its user. The task ends by itself, because every wait in it has a timeout.
    pub(super) async fn renew(self: &Arc<Self>, why: Why) -> Result<(), OAuthError> {
        let (source, before) = (Arc::clone(self), self.state().finished);
        let getting = tokio::spawn(async move {
            let _alone = source.gate.lock().await;
            {
                let state = source.state();
                let has_another = match (&state.held, &why.refused) {
                    (Some(held), Some(refused)) => held.token != *refused,
                    (held, refused) => held.is_some() && refused.is_none(),
                };
                if has_another && why.kind != Kind::Login {
                    return Ok(());
                }
                if state.finished != before && why.kind != Kind::Login {
                    return state.last.clone().map_or(Ok(()), Err);
                }
            }
            let got = Box::pin(source.acquire(&why)).await;
            // A failure without a login must not prevent the next request from starting one.
            if got.is_ok() || !why.is_quiet {
                let mut state = source.state();
                state.finished += 1;
                state.last = got.as_ref().err().cloned();
            }
            got
        });
        let interrupted =
            |_| Err(OAuthError::Login("the operation was interrupted; retry".to_owned()));
        getting.await.unwrap_or_else(interrupted)
    }

    /// Returns whether a request goes to the server that the tokens are for.
    fn is_for(&self, url: &str) -> bool {
        let (Some(server), Some(place)) = (&self.server, Place::parse(url)) else { return false };
        server.is_same_origin(&place)
    }

    /// Returns an error if tokens would be sent in clear text.
    pub(super) fn secure(&self) -> Result<(), OAuthError> {
        let is_safe = |server: &Place| server.is_tls() || is_loopback_host(server.host());
        match self.settings.plain_http || self.server.as_ref().is_some_and(is_safe) {
            true => Ok(()),
            false => Err(OAuthError::Insecure { server: self.settings.server.clone() }),
        }
    }

    /// Returns the current token. The first call reads it from the store.
    pub(super) async fn held(&self) -> Result<Option<Arc<Held>>, OAuthError> {
        if !self.state().is_loaded {
            self.reload().await?;
        }
        Ok(self.current())
    }

    pub(super) fn current(&self) -> Option<Arc<Held>> {
        self.state().held.clone()
    }

    /// Replaces the current token.
    pub(super) fn hold(&self, held: Option<Held>) {
        let mut state = self.state();
        state.is_loaded = true;
        if let Some(held) = &held {
            state.bound = Some(held.issuer.clone());
        }
        state.held = held.map(Arc::new);
    }

    /// Returns the cached metadata of an authorization server.
    pub(super) fn known_server(&self, issuer: &str) -> Option<ServerMetadata> {
        self.state().server.clone().filter(|server| server.issuer == issuer)
    }

    pub(super) fn note_server(&self, server: &ServerMetadata) {
        self.state().server = Some(server.clone());
    }

    /// Returns the authorization server that the configured client belongs to.
    pub(super) fn bound_to(&self) -> Option<String> {
        self.settings.issuer.clone().or_else(|| self.state().bound.clone())
    }

    pub(super) fn now(&self) -> SystemTime {
        self.settings.clock.wall()
    }

    /// Returns the fetcher for the authorization server. Its network policy depends on the address
    /// of the MCP server.
    pub(super) async fn fetch(&self) -> &Fetcher {
        self.fetch
            .get_or_init(|| async {
                let policy = match (self.settings.network_policy, &self.server) {
                    (Some(policy), _) => policy,
                    (None, Some(server)) => policy_for(server).await,
                    (None, None) => NetworkPolicy::Public,
                };
                self.fetching(policy)
            })
            .await
    }

    /// Returns a fetcher for configured URLs, which need no network policy.
    pub(super) fn own_fetch(&self) -> Fetcher {
        self.fetching(NetworkPolicy::Anywhere)
    }

    fn fetching(&self, policy: NetworkPolicy) -> Fetcher {
        let mut fetch = Fetcher::new().network_policy(policy);
        if self.settings.plain_http {
            fetch = fetch.allow_http(true);
        }
        match &self.settings.ca_file {
            Some(file) => fetch.ca_file(file),
            None => fetch,
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the network policy for a server. A server in a private network may refer to private
/// addresses.
async fn policy_for(server: &Place) -> NetworkPolicy {
    let place = (server.host().trim_matches(['[', ']']), server.port());
    match tokio::net::lookup_host(place).await {
        Ok(found) => found.map(|it| NetworkPolicy::for_address(it.ip())).max().unwrap_or_default(),
        Err(_) => NetworkPolicy::Public,
    }
}

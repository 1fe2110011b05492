//! The source of tokens: what a request gets, and what becomes of a refusal.

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

/// So many seconds before its end a token is renewed, if it can be.
const EARLY: u64 = 30;

/// How often a request is sent again for more scopes, or for another nonce.
const STEPS: u32 = 3;

/// Gets tokens for one MCP server, and keeps them good. Clones share everything.
///
/// Give it to `ClientBuilder::token_source`. See the [module](super) for what it does.
#[derive(Clone)]
pub struct OAuth(Arc<Source>);

impl fmt::Debug for OAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OAuth").field("server", &self.0.settings.server).finish_non_exhaustive()
    }
}

/// As whom a client is logged in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoginInfo {
    /// The authorization server.
    pub issuer: String,
    /// The client's id there.
    pub client_id: String,
    /// The scopes of the token.
    pub scopes: Vec<String>,
    /// When the token expires, if anybody has said so.
    pub expires: Option<SystemTime>,
    /// Whether it can be renewed without a login.
    pub renewable: bool,
    /// Whether it is bound to a key.
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

    /// The extension of the protocol that this way to a token belongs to, for clients that declare
    /// what they can do.
    pub fn extension(&self) -> Option<&'static str> {
        match &self.0.settings.grant {
            Grant::ClientCredentials => Some("io.modelcontextprotocol/oauth-client-credentials"),
            Grant::Enterprise(_) => {
                Some("io.modelcontextprotocol/enterprise-managed-authorization")
            }
            Grant::Code | Grant::Workload(_) => None,
        }
    }

    /// Logs in now, whether there is a token or not.
    ///
    /// # Errors
    ///
    /// When there is no token at the end.
    pub async fn login(&self) -> Result<LoginInfo, OAuthError> {
        self.0.renew(Why::login()).await?;
        let server = self.0.settings.server.clone();
        self.login_info().await?.ok_or(OAuthError::LoginRequired { server })
    }

    /// Forgets the tokens, and tells the authorization server where it wants to hear of it. Whether
    /// there were any.
    ///
    /// # Errors
    ///
    /// When they may still be kept.
    pub async fn logout(&self) -> Result<bool, OAuthError> {
        self.0.log_out().await
    }

    /// As whom requests are made now; `None` if nobody is logged in.
    ///
    /// # Errors
    ///
    /// When what is kept cannot be read.
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

/// What clones share.
pub(super) struct Source {
    pub(super) settings: Settings,
    /// `None` if the URL cannot be read; nothing is asked then, and connecting says why.
    pub(super) server: Option<Place>,
    fetch: OnceCell<Fetcher>,
    // A std mutex: nothing awaits while it is held.
    state: Mutex<State>,
    /// Held by whoever gets a token: one at a time.
    pub(super) gate: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    is_loaded: bool,
    held: Option<Arc<Held>>,
    /// What the authorization server has published.
    server: Option<ServerMetadata>,
    /// Where the client that is configured belongs.
    bound: Option<String>,
    /// How often a token was got or not got, and what the last time came to.
    finished: u64,
    last: Option<OAuthError>,
}

/// Why a token is wanted.
#[derive(Clone, Debug, Default)]
pub(super) struct Why {
    /// The token that is not good enough.
    pub(super) refused: Option<SecretString>,
    /// Where the server describes itself.
    pub(super) metadata: Option<String>,
    /// The scopes that it wants.
    pub(super) scopes: Option<Scopes>,
    /// Whether it wants tokens that are bound to a key.
    pub(super) dpop: bool,
    /// Whether nobody is to be asked to log in: streams and farewells are not worth a browser.
    pub(super) is_quiet: bool,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// There is none, or it is refused.
    #[default]
    Refused,
    /// It has too few scopes.
    StepUp,
    /// It is about to expire.
    Expiring,
    /// Somebody wants to log in.
    Login,
}

impl Why {
    fn login() -> Self {
        Self { kind: Kind::Login, ..Self::default() }
    }

    fn expiring(held: &Held) -> Self {
        Self { refused: Some(held.token.clone()), kind: Kind::Expiring, ..Self::default() }
    }

    fn challenged(answer: &TokenResponse<'_>, challenges: &[Challenge], kind: Kind) -> Self {
        let get = |name: &str| challenges.iter().find_map(|challenge| challenge.get(name));
        Self {
            refused: answer.token.map(|token| token.value().clone()),
            metadata: get("resource_metadata").map(str::to_owned),
            scopes: get("scope").map(Scopes::parse).filter(|scopes| !scopes.is_empty()),
            // Not if it would take either.
            dpop: challenges.iter().any(|it| it.is("DPoP"))
                && !challenges.iter().any(|it| it.is("Bearer")),
            is_quiet: answer.request.method != Method::POST,
            kind,
        }
    }
}

impl Source {
    async fn token(
        self: &Arc<Self>,
        request: &TokenRequest<'_>,
    ) -> Result<Option<Token>, OAuthError> {
        // A token is for its server and nobody else.
        if !self.is_for(request.url) {
            return Ok(None);
        }
        let Some(mut held) = self.held().await? else { return Ok(None) };
        let now = self.now();
        if held.expires_within(EARLY, now) {
            if held.refresh.is_some() {
                match self.renew(Why::expiring(&held)).await {
                    Ok(()) => {}
                    // What is still good is used; the next request tries again.
                    Err(error) if error.is_transient() && !held.expires_within(0, now) => {}
                    Err(error) => return Err(error),
                }
                held = match self.current() {
                    Some(held) => held,
                    None => return Ok(None),
                };
            }
            if held.expires_within(0, now) {
                return Ok(None);
            }
        }
        self.secure()?;
        let token = held.token.clone();
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
            // Nothing is wrong with the token.
            StatusCode::UNAUTHORIZED
                if says("use_dpop_nonce") && has_nonce && answer.attempt <= STEPS =>
            {
                Ok(true)
            }
            // Somebody else has got another one meanwhile.
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

    /// Gets another token, unless somebody is doing so already: then what that comes to is the answer.
    ///
    /// In a task of its own: whoever waits may leave, and the next one finds a login that was begun
    /// still waiting for its user. It ends by itself: all that it waits for has a time-out.
    async fn renew(self: &Arc<Self>, why: Why) -> Result<(), OAuthError> {
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
            // Who may ask for a login is not content with the word of one who may not.
            if got.is_ok() || !why.is_quiet {
                let mut state = source.state();
                state.finished += 1;
                state.last = got.as_ref().err().cloned();
            }
            got
        });
        let interrupted = |_| Err(OAuthError::Login("it was interrupted; try again".to_owned()));
        getting.await.unwrap_or_else(interrupted)
    }

    /// Whether a request goes to the server that the tokens are for.
    fn is_for(&self, url: &str) -> bool {
        let (Some(server), Some(place)) = (&self.server, Place::parse(url)) else { return false };
        server.is_same_origin(&place)
    }

    /// Tokens do not travel in clear text.
    pub(super) fn secure(&self) -> Result<(), OAuthError> {
        let is_safe = |server: &Place| server.is_tls() || is_loopback_host(server.host());
        match self.settings.plain_http || self.server.as_ref().is_some_and(is_safe) {
            true => Ok(()),
            false => Err(OAuthError::Insecure { server: self.settings.server.clone() }),
        }
    }

    /// The token that is held; read from the store the first time.
    pub(super) async fn held(&self) -> Result<Option<Arc<Held>>, OAuthError> {
        if !self.state().is_loaded {
            self.reload().await?;
        }
        Ok(self.current())
    }

    pub(super) fn current(&self) -> Option<Arc<Held>> {
        self.state().held.clone()
    }

    /// Takes another token, or none.
    pub(super) fn hold(&self, held: Option<Held>) {
        let mut state = self.state();
        state.is_loaded = true;
        if let Some(held) = &held {
            state.bound = Some(held.issuer.clone());
        }
        state.held = held.map(Arc::new);
    }

    /// What is known of an authorization server.
    pub(super) fn known_server(&self, issuer: &str) -> Option<ServerMetadata> {
        self.state().server.clone().filter(|server| server.issuer == issuer)
    }

    pub(super) fn note_server(&self, server: &ServerMetadata) {
        self.state().server = Some(server.clone());
    }

    /// Where the client that is configured belongs.
    pub(super) fn bound_to(&self) -> Option<String> {
        self.settings.issuer.clone().or_else(|| self.state().bound.clone())
    }

    pub(super) fn now(&self) -> SystemTime {
        self.settings.clock.wall()
    }

    /// Fetches as far as the server itself is away.
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

    /// Fetches what is configured here: whoever did that has chosen where it is.
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

/// Whoever talks to a server in a private network may be sent to others there.
async fn policy_for(server: &Place) -> NetworkPolicy {
    let place = (server.host().trim_matches(['[', ']']), server.port());
    match tokio::net::lookup_host(place).await {
        Ok(found) => found.map(|it| NetworkPolicy::for_address(it.ip())).max().unwrap_or_default(),
        Err(_) => NetworkPolicy::Public,
    }
}

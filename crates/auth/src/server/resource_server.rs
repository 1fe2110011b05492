//! Authenticator that verifies access tokens.
//!
//! Verified tokens are cached by their hash, so that most requests need one hash and one lookup.
//! Other tokens are verified by signature with cached keys. Network access is needed only for
//! unknown keys and for introspection.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, UNIX_EPOCH},
};

use bytes::Bytes;
use http::{HeaderValue, request::Parts};
use outlive_protocol::{Clock, Principal, Scopes};
use outlive_transport::http::{AuthDecision, AuthRejection, Authenticator, DocumentService};

use super::{
    challenge::{Challenges, Scheme},
    delegates::Delegates,
    digest::{Digest, digest},
    dpop::{Proofs, Refused},
    introspect::Asking,
    issuer::{Check, Issuer},
    keys::{Found, Keys, candidates},
    metadata::Metadata,
    presented_token::{NotShown, Shown},
    token::{Rules, Why},
    token_cache::{Accepted, Known},
};
use crate::{
    fetch::Fetcher,
    jose::{Claims, Jws},
};

/// Retry delay for clients if an issuer is unavailable.
const RETRY: Duration = Duration::from_secs(5);

/// Maximum number of cached inactive tokens.
const INACTIVE: usize = 1_000;

/// A resource server, which accepts tokens of authorization servers.
///
/// It is an [`Authenticator`]: pass it to `HttpConfig::authenticator`. It also serves the metadata
/// that tells clients where to get a token. Clones share their state.
///
/// ```
/// use outlive_auth::server::{Issuer, ResourceServer};
///
/// let auth = ResourceServer::builder("https://mcp.example.com/mcp")
///     .issuer(Issuer::new("https://id.example.com"))
///     .scopes(["mcp"])
///     .build()?;
/// # Ok::<(), outlive_auth::server::ResourceServerBuildError>(())
/// ```
#[derive(Clone)]
pub struct ResourceServer(pub(super) Arc<TokenVerifier>);

/// State to verify the token of a request.
pub(super) struct TokenVerifier {
    pub(super) rules: Rules,
    pub(super) issuers: Vec<Trusted>,
    /// Scopes that every request requires.
    pub(super) needed: Scopes,
    pub(super) challenges: Challenges,
    pub(super) metadata: Metadata,
    pub(super) proofs: Proofs,
    pub(super) proof_required: bool,
    pub(super) longest_token: usize,
    pub(super) known: Known,
    /// Inactive tokens, with the time until which they are not introspected again.
    // A std mutex: no code awaits while it is held.
    pub(super) inactive: Mutex<HashMap<Digest, i64>>,
    pub(super) delegates: Option<Delegates>,
    pub(super) fetch: Arc<Fetcher>,
    pub(super) clock: Arc<dyn Clock>,
}

/// A trusted issuer, and its keys unless it uses introspection.
pub(super) struct Trusted {
    pub(super) issuer: Issuer,
    pub(super) keys: Option<Arc<Keys>>,
}

/// A request and its token.
struct Request<'a> {
    parts: &'a Parts,
    shown: Shown<'a>,
    token: Digest,
}

/// Reason why a token was not accepted.
enum Bad {
    Token(Why),
    Unavailable,
}

/// Result of verifying a token, or the network request that is needed.
enum Judged<'a> {
    Done(Result<Accepted, Bad>),
    /// The keys must be fetched.
    Keys {
        jws: Box<Jws<'a>>,
        trusted: &'a Trusted,
        keys: &'a Arc<Keys>,
    },
    /// The token must be introspected.
    Token {
        issuer: &'a Issuer,
        asking: &'a Asking,
    },
}

impl ResourceServer {
    /// Returns a tower service for the protected resource metadata, for an application that nests
    /// the endpoint under a path. It serves both paths that clients try:
    ///
    /// ```
    /// # use outlive_auth::server::{Issuer, ResourceServer};
    /// # fn app(auth: ResourceServer) -> axum::Router {
    /// let metadata = auth.metadata_service();
    /// axum::Router::new()
    ///     .route_service("/.well-known/oauth-protected-resource", metadata.clone())
    ///     .route_service("/.well-known/oauth-protected-resource/{*path}", metadata)
    /// # }
    /// ```
    pub fn metadata_service(&self) -> DocumentService {
        DocumentService::new(self.clone())
    }

    /// Returns the protected resource metadata as JSON, for applications that serve it themselves.
    pub fn metadata(&self) -> Bytes {
        self.0.metadata.document()
    }

    /// Returns the URL of the metadata, which challenges contain.
    pub fn metadata_url(&self) -> &str {
        self.0.metadata.url()
    }
}

impl Authenticator for ResourceServer {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a> {
        self.0.authenticate(parts)
    }

    fn document(&self, path: &str) -> Option<Bytes> {
        self.0.metadata.at(path)
    }

    fn missing_scopes(&self, _: &Principal, needed: &Scopes) -> Vec<HeaderValue> {
        let challenges = &self.0.challenges;
        vec![challenges.insufficient_scope(challenges.preferred(), needed)]
    }
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let issuers: Vec<&str> = self.0.issuers.iter().map(|one| &*one.issuer.id).collect();
        f.debug_struct("ResourceServer")
            .field("resource", &self.0.rules.resource)
            .field("issuers", &issuers)
            .field("needed", &self.0.needed)
            .finish_non_exhaustive()
    }
}

impl TokenVerifier {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a> {
        let shown = match Shown::of(parts, self.longest_token) {
            Ok(shown) => shown,
            Err(why) => return AuthDecision::Now(Err(self.not_shown(why))),
        };
        let token = digest(shown.token);
        let now = self.now();
        let request = Request { parts, shown, token };
        if let Some(known) = self.known.get(&token, now) {
            return AuthDecision::Now(self.admit(&request, known, now));
        }
        let text = match request.shown.text() {
            Ok(text) => text,
            Err(why) => return AuthDecision::Now(Err(self.not_shown(why))),
        };
        match self.judge(text, &token, now) {
            Judged::Done(judged) => AuthDecision::Now(self.conclude(&request, judged, now)),
            ask => AuthDecision::Later(Box::pin(async move {
                let judged = self.ask(ask, text, now).await;
                self.conclude(&request, judged, self.now())
            })),
        }
    }

    fn not_shown(&self, why: NotShown) -> AuthRejection {
        match why {
            NotShown::Nothing => self.challenges.no_token(),
            NotShown::Malformed(why) => self.challenges.invalid_request(why),
        }
    }

    /// Verifies a token as far as that is possible without network access.
    fn judge<'a>(&'a self, token: &'a str, digest: &Digest, now: i64) -> Judged<'a> {
        let bad = |why| Judged::Done(Err(Bad::Token(why)));
        let jws = Jws::parse(token);
        let claimed = jws.as_ref().ok().and_then(|jws| self.claimed_issuer(jws));
        match (jws, claimed) {
            (Ok(jws), Some(trusted @ Trusted { keys: Some(keys), .. })) => {
                match keys.find(jws.header()) {
                    Found::Ask => Judged::Keys { jws: Box::new(jws), trusted, keys },
                    found => Judged::Done(self.verify(&jws, trusted, found, now)),
                }
            }
            // A token that is not signed, or not by an issuer with keys, may be valid at an issuer
            // with introspection.
            (_, claimed) => {
                let asked = |one: &&Trusted| matches!(one.issuer.check, Check::Introspection(_));
                let trusted = claimed.or_else(|| self.issuers.iter().find(asked));
                let Some(Trusted { issuer, .. }) = trusted else {
                    return bad("not a signed token of a trusted issuer");
                };
                match &issuer.check {
                    Check::Introspection(_) if self.is_inactive(digest, now) => bad("not active"),
                    Check::Introspection(asking) => Judged::Token { issuer, asking },
                    Check::Keys(_) => bad("malformed, or without a signature"),
                }
            }
        }
    }

    /// Returns the trusted issuer that a token names. The token is not verified yet.
    fn claimed_issuer(&self, jws: &Jws<'_>) -> Option<&Trusted> {
        let claims = Claims::read(jws.unverified())?;
        let iss = claims.iss?;
        self.issuers.iter().find(|trusted| *trusted.issuer.id == *iss)
    }

    /// Performs the network request that is needed to verify a token.
    async fn ask(&self, judged: Judged<'_>, token: &str, now: i64) -> Result<Accepted, Bad> {
        match judged {
            Judged::Done(judged) => judged,
            Judged::Keys { jws, trusted, keys } => {
                let found = keys.ask(jws.header()).await;
                self.verify(&jws, trusted, found, now)
            }
            Judged::Token { issuer, asking } => match asking.about(&self.fetch, token).await {
                Ok(Some(said)) => self.rules.judge(issuer, &said, now).map_err(Bad::Token),
                Ok(None) => {
                    self.note_inactive(digest(token.as_bytes()), now);
                    Err(Bad::Token("not active"))
                }
                Err(error) => {
                    tracing::warn!(issuer = &*issuer.id, %error, "token introspection failed");
                    Err(Bad::Unavailable)
                }
            },
        }
    }

    fn verify(
        &self,
        jws: &Jws<'_>,
        trusted: &Trusted,
        found: Found,
        now: i64,
    ) -> Result<Accepted, Bad> {
        let keys = match found {
            Found::Here(keys) => keys,
            Found::Unknown => return Err(Bad::Token("signed with an unknown key")),
            Found::Ask | Found::Unavailable => return Err(Bad::Unavailable),
        };
        let issuer = &trusted.issuer;
        self.rules.kind(issuer, jws.header()).map_err(Bad::Token)?;
        let said = jws
            .verify(candidates(&keys, jws.header()), issuer.algorithms)
            .map_err(|_| Bad::Token("invalid signature"))?;
        self.rules.judge(issuer, said, now).map_err(Bad::Token)
    }

    /// Caches a valid token, and returns a rejection for an invalid one.
    fn conclude(
        &self,
        request: &Request<'_>,
        judged: Result<Accepted, Bad>,
        now: i64,
    ) -> Result<Principal, AuthRejection> {
        match judged {
            Ok(accepted) => {
                self.known.insert(request.token, accepted.clone());
                self.admit(request, accepted, now)
            }
            Err(Bad::Token(why)) => {
                tracing::debug!(error = why, "rejecting a token");
                Err(self.challenges.invalid_token(request.shown.scheme))
            }
            Err(Bad::Unavailable) => Err(AuthRejection::unavailable(RETRY)),
        }
    }

    /// Accepts a caller with a valid token, after checking its proof and its scopes.
    fn admit(
        &self,
        request: &Request<'_>,
        accepted: Accepted,
        now: i64,
    ) -> Result<Principal, AuthRejection> {
        let scheme = request.shown.scheme;
        match (&accepted.key, scheme) {
            (None, Scheme::Bearer) if !self.proof_required => {}
            (Some(key), Scheme::Dpop) => self.prove(request, key, now)?,
            // A bound token without a proof may be stolen, and a proof for an unbound token proves
            // nothing.
            _ => {
                tracing::debug!("rejecting a token: its scheme does not match its binding");
                return Err(self.challenges.invalid_token(Scheme::Dpop));
            }
        }
        if !accepted.principal.may(&self.needed) {
            return Err(self.challenges.insufficient(scheme, &Scopes::NONE));
        }
        // A token that decides is for the console, not for calls.
        if let Some(delegates) = &self.delegates
            && !accepted.principal.is_deciding()
        {
            delegates.note(&accepted.principal, request.shown.token, &request.token);
        }
        Ok(accepted.principal)
    }

    fn prove(&self, request: &Request<'_>, key: &str, now: i64) -> Result<(), AuthRejection> {
        let resource = &self.rules.resource;
        match self.proofs.check(request.parts, resource, key, &request.token, now) {
            Ok(()) => Ok(()),
            Err(Refused::Invalid(why)) => {
                tracing::debug!(error = why, "rejecting a DPoP proof");
                Err(self.challenges.invalid_proof())
            }
            Err(Refused::Nonce(nonce)) => Err(self.challenges.use_nonce(&nonce)),
            Err(Refused::NoRoom) => Err(AuthRejection::rate_limited(RETRY)),
        }
    }

    fn is_inactive(&self, token: &Digest, now: i64) -> bool {
        let inactive = self.inactive.lock().unwrap_or_else(PoisonError::into_inner);
        inactive.get(token).is_some_and(|until| now < *until)
    }

    fn note_inactive(&self, token: Digest, now: i64) {
        let mut inactive = self.inactive.lock().unwrap_or_else(PoisonError::into_inner);
        if inactive.len() >= INACTIVE {
            // The full cache is cleared completely: introspecting a token again is cheap.
            inactive.clear();
        }
        inactive.insert(token, now.saturating_add(self.rules.keep_answer));
    }

    /// Returns the time in Unix seconds.
    fn now(&self) -> i64 {
        let since = self.clock.wall().duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }
}

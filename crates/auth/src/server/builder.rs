//! Builder of a resource server.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use outlive_protocol::{Clock, Scopes};
use outlive_transport::TokioClock;

use super::{
    build_error::ResourceServerBuildError,
    challenge::{Challenges, Scheme},
    delegates::Delegates,
    dpop::Proofs,
    hierarchy::Hierarchy,
    issuer::{Check, Issuer},
    keys::{Keys, Source},
    metadata::{About, Metadata},
    nonce::Nonces,
    replay::Replay,
    resource_server::{ResourceServer, TokenVerifier, Trusted},
    resource_uri::ResourceUri,
    token::Rules,
    token_cache::Known,
};
use crate::{
    fetch::{Fetcher, NetworkPolicy},
    jose::{Algorithm, Algorithms},
};

/// Builder of a resource server. The default of every limit is suitable for production.
#[must_use]
pub struct ResourceServerBuilder {
    resource: String,
    issuers: Vec<Issuer>,
    needed: Scopes,
    offered: Scopes,
    hierarchy: Hierarchy,
    name: Option<String>,
    documentation: Option<String>,
    skew: Duration,
    keep: Duration,
    keep_answer: Duration,
    tokens: usize,
    longest_token: usize,
    proof_required: bool,
    proof_lifetime: Duration,
    proofs: usize,
    nonces: Option<(Option<Vec<u8>>, Duration)>,
    delegates: Option<Delegates>,
    fetch: Arc<Fetcher>,
    clock: Arc<dyn Clock>,
}

impl ResourceServer {
    /// Returns a builder. `resource` is the URL that clients connect to, without a query. Tokens
    /// must be issued for it.
    pub fn builder(resource: impl Into<String>) -> ResourceServerBuilder {
        ResourceServerBuilder {
            resource: resource.into(),
            issuers: Vec::new(),
            needed: Scopes::NONE,
            offered: Scopes::NONE,
            hierarchy: Hierarchy::default(),
            name: None,
            documentation: None,
            skew: Duration::from_secs(30),
            keep: Duration::from_secs(5 * 60),
            keep_answer: Duration::from_secs(30),
            tokens: 10_000,
            longest_token: 16 << 10,
            proof_required: false,
            proof_lifetime: Duration::from_secs(60),
            proofs: 100_000,
            nonces: None,
            delegates: None,
            fetch: Arc::new(Fetcher::new().network_policy(NetworkPolicy::Local)),
            clock: Arc::new(TokioClock::new()),
        }
    }
}

impl ResourceServerBuilder {
    /// Trusts the tokens of an authorization server. Clients try the first one first.
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// Adds scopes that every request requires. Clients request them first.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.needed = self.needed.with(&Scopes::of(scopes));
        self
    }

    /// Adds scopes that clients may request first. Scopes of single tools are not needed here: a
    /// client gets a challenge when it calls such a tool.
    pub fn advertised_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.offered = self.offered.with(&Scopes::of(scopes));
        self
    }

    /// Declares that the scope `broad` includes the `narrow` scopes and the scopes that these
    /// imply.
    pub fn implies<S: AsRef<str>>(
        mut self,
        broad: &str,
        narrow: impl IntoIterator<Item = S>,
    ) -> Self {
        self.hierarchy.imply(broad, narrow);
        self
    }

    /// Sets a display name for clients.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Collects the newest token of each caller, so that a program on this server can exchange it for
    /// a token at another server. By default, tokens are not kept.
    pub fn delegates(mut self, delegates: Delegates) -> Self {
        self.delegates = Some(delegates);
        self
    }

    /// Sets the URL of the documentation for client developers.
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// Sets the permitted clock difference to issuers and callers.
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// Sets how long a verified token is cached. A revoked signing key stays accepted for up to
    /// this time.
    pub fn token_cache_ttl(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// Sets how long the result of an introspection is cached. A revoked token stays accepted for
    /// up to this time.
    pub fn introspection_cache_ttl(mut self, keep: Duration) -> Self {
        self.keep_answer = keep;
        self
    }

    /// Sets the maximum number of cached tokens.
    pub fn token_cache_size(mut self, tokens: usize) -> Self {
        self.tokens = tokens;
        self
    }

    /// Sets the maximum bytes of a token.
    pub fn max_token_bytes(mut self, bytes: usize) -> Self {
        self.longest_token = bytes;
        self
    }

    /// Accepts only tokens that are bound to a key, with a DPoP proof in every request (RFC 9449).
    /// By default, bound tokens are optional, but always require their proof.
    pub fn require_dpop(mut self) -> Self {
        self.proof_required = true;
        self
    }

    /// Sets the maximum age of a proof.
    pub fn dpop_proof_lifetime(mut self, lifetime: Duration) -> Self {
        self.proof_lifetime = lifetime;
        self
    }

    /// Sets the maximum number of remembered proofs, which protect against replay. Above it,
    /// requests with proofs are rate limited.
    pub fn dpop_replay_cache_size(mut self, proofs: usize) -> Self {
        self.proofs = proofs;
        self
    }

    /// Requires a server nonce in every proof. The nonce changes after each `span`. Replicas must
    /// share a `secret`; without one, each process generates its own.
    pub fn dpop_nonces(mut self, span: Duration, secret: Option<&[u8]>) -> Self {
        self.nonces = Some((secret.map(<[u8]>::to_vec), span));
        self
    }

    /// Sets the fetcher for issuers. The default uses TLS and allows public and private addresses.
    pub fn fetch(mut self, fetch: Fetcher) -> Self {
        self.fetch = Arc::new(fetch);
        self
    }

    /// Sets the clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Builds the resource server.
    ///
    /// # Errors
    ///
    /// Returns an error if the resource URI or an issuer is invalid.
    pub fn build(self) -> Result<ResourceServer, ResourceServerBuildError> {
        let resource = ResourceUri::parse(&self.resource).map_err(|why| {
            ResourceServerBuildError::Resource { uri: self.resource.clone(), why }
        })?;
        if self.issuers.is_empty() {
            return Err(ResourceServerBuildError::NoIssuer);
        }
        for (index, issuer) in self.issuers.iter().enumerate() {
            let bad = |why| ResourceServerBuildError::Issuer { issuer: issuer.id.to_string(), why };
            check(issuer, &self.issuers[..index], &self.fetch).map_err(bad)?;
        }
        let scheme = if self.proof_required { Scheme::Dpop } else { Scheme::Bearer };
        let names: Vec<&str> = Algorithms::ALL.iter().map(Algorithm::as_str).collect();
        let needed = without_offline(&self.needed);
        let metadata = self.metadata(&resource);
        let challenges = Challenges::new(metadata.url(), needed.clone(), &names.join(" "), scheme);
        let proofs = self.proofs()?;
        let issuers = self.issuers.into_iter();
        let issuers = issuers.map(|issuer| trust(issuer, &self.fetch, &self.clock)).collect();
        Ok(ResourceServer(Arc::new(TokenVerifier {
            issuers,
            rules: Rules {
                resource,
                hierarchy: self.hierarchy,
                skew: seconds(self.skew),
                keep: seconds(self.keep),
                keep_answer: seconds(self.keep_answer),
            },
            needed,
            challenges,
            metadata,
            proofs,
            proof_required: self.proof_required,
            longest_token: self.longest_token,
            known: Known::new(self.tokens),
            inactive: Mutex::new(HashMap::new()),
            delegates: self.delegates,
            fetch: self.fetch,
            clock: self.clock,
        })))
    }

    fn metadata(&self, resource: &ResourceUri) -> Metadata {
        Metadata::new(&About {
            resource,
            issuers: self.issuers.iter().map(|issuer| &*issuer.id).collect(),
            scopes: &without_offline(&self.needed.with(&self.offered)),
            name: self.name.as_deref(),
            documentation: self.documentation.as_deref(),
            proofs: Algorithms::ALL,
            proof_required: self.proof_required,
        })
    }

    fn proofs(&self) -> Result<Proofs, ResourceServerBuildError> {
        let (skew, lifetime) = (seconds(self.skew), seconds(self.proof_lifetime));
        let nonces = match &self.nonces {
            None => None,
            Some((secret, span)) => Some(
                Nonces::new(secret.as_deref(), *span)
                    .ok_or(ResourceServerBuildError::NoRandomness)?,
            ),
        };
        // A proof can be valid for its lifetime plus the clock skew in both directions.
        let replay = Replay::new(lifetime.saturating_add(skew.saturating_mul(2)), self.proofs);
        Ok(Proofs { algorithms: Algorithms::ALL, lifetime, skew, replay, nonces })
    }
}

/// Creates the state of an issuer, with its keys unless its tokens are introspected.
fn trust(issuer: Issuer, fetch: &Arc<Fetcher>, clock: &Arc<dyn Clock>) -> Trusted {
    let keys = match &issuer.check {
        Check::Introspection(_) => None,
        Check::Keys(source) => {
            let (id, fetch, clock) = (Arc::clone(&issuer.id), Arc::clone(fetch), Arc::clone(clock));
            Some(Arc::new(Keys::new(id, source.clone(), fetch, clock)))
        }
    };
    Trusted { issuer, keys }
}

fn check(issuer: &Issuer, before: &[Issuer], fetch: &Fetcher) -> Result<(), String> {
    if ResourceUri::parse(&issuer.id).is_err() {
        return Err("the issuer must be an `https:` URI without query and fragment".to_owned());
    }
    if before.iter().any(|other| other.id == issuer.id) {
        return Err("the issuer is configured twice".to_owned());
    }
    let asked = match &issuer.check {
        Check::Introspection(asking) => Some(asking.url()),
        Check::Keys(Source::Url(url)) => Some(&**url),
        Check::Keys(Source::Issuer) => Some(&*issuer.id),
        Check::Keys(Source::Fixed(_)) => None,
    };
    if issuer.any_audience && !matches!(issuer.check, Check::Introspection(_)) {
        let why = "a signed token requires an audience; set it with `.audience(…)`";
        return Err(why.to_owned());
    }
    // Invalid URLs are reported at build time, not with the first request.
    asked.map_or(Ok(()), |url| fetch.check(url).map_err(|error| error.to_string()))
}

/// Removes `offline_access`, which concerns only the client and the issuer.
fn without_offline(scopes: &Scopes) -> Scopes {
    Scopes::of(scopes.iter().filter(|scope| *scope != "offline_access"))
}

fn seconds(span: Duration) -> i64 {
    i64::try_from(span.as_secs()).unwrap_or(i64::MAX)
}

// A test compares this list of settings with `docs/limits.md`.
impl fmt::Debug for ResourceServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            resource: _,
            issuers,
            needed,
            offered,
            hierarchy: _,
            name,
            documentation,
            skew,
            keep,
            keep_answer,
            tokens,
            longest_token,
            proof_required,
            proof_lifetime,
            proofs,
            nonces,
            delegates: _,
            fetch: _,
            clock: _,
        } = self;
        let issuers: Vec<&str> = issuers.iter().map(|issuer| &*issuer.id).collect();
        f.debug_struct("ResourceServerBuilder")
            .field("issuer", &format_args!("{issuers:?}"))
            .field("scopes", &format_args!("{needed}"))
            .field("advertised_scopes", &format_args!("{offered}"))
            .field("implies", &format_args!("…"))
            .field("name", name)
            .field("documentation", documentation)
            .field("clock_skew", skew)
            .field("token_cache_ttl", keep)
            .field("introspection_cache_ttl", keep_answer)
            .field("token_cache_size", tokens)
            .field("max_token_bytes", longest_token)
            .field("require_dpop", proof_required)
            .field("dpop_proof_lifetime", proof_lifetime)
            .field("dpop_replay_cache_size", proofs)
            .field("dpop_nonces", &nonces.is_some())
            .field("delegates", &format_args!("…"))
            .field("fetch", &format_args!("…"))
            .field("clock", &format_args!("…"))
            .finish()
    }
}

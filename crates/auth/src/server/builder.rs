//! How a resource server is set up.

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

/// How a resource server is set up. Every limit has a default that is meant for production.
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
    fetch: Arc<Fetcher>,
    clock: Arc<dyn Clock>,
}

impl ResourceServer {
    /// A server that is known to the outside by this URI: the one that clients connect to, without a
    /// query. It is what tokens have to be issued for.
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
            fetch: Arc::new(Fetcher::new().network_policy(NetworkPolicy::Local)),
            clock: Arc::new(TokioClock::new()),
        }
    }
}

impl ResourceServerBuilder {
    /// Takes the tokens of an authorization server. The first one is the one that clients try first.
    pub fn issuer(mut self, issuer: Issuer) -> Self {
        self.issuers.push(issuer);
        self
    }

    /// The scopes that every request needs, and that clients are told to begin with.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.needed = self.needed.with(&Scopes::of(scopes));
        self
    }

    /// Further scopes that clients may begin with. Those of single tools need not be here: whoever
    /// uses such a tool is told then.
    pub fn advertised_scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.offered = self.offered.with(&Scopes::of(scopes));
        self
    }

    /// Says that whoever has the first scope also has the others, and what they imply.
    pub fn implies<S: AsRef<str>>(
        mut self,
        broad: &str,
        narrow: impl IntoIterator<Item = S>,
    ) -> Self {
        self.hierarchy.imply(broad, narrow);
        self
    }

    /// A name for people, which clients may show.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// A page for people who write clients.
    pub fn documentation(mut self, url: impl Into<String>) -> Self {
        self.documentation = Some(url.into());
        self
    }

    /// How far the clocks of issuers and callers may be apart from ours.
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.skew = skew;
        self
    }

    /// How long a signed token is taken without looking at it again. A key that an issuer withdraws
    /// may count for that long.
    pub fn token_cache_ttl(mut self, keep: Duration) -> Self {
        self.keep = keep;
        self
    }

    /// How long the answer of introspection counts. A token that is revoked may be taken for that
    /// long.
    pub fn introspection_cache_ttl(mut self, keep: Duration) -> Self {
        self.keep_answer = keep;
        self
    }

    /// How many tokens are remembered.
    pub fn token_cache_size(mut self, tokens: usize) -> Self {
        self.tokens = tokens;
        self
    }

    /// How many bytes a token may have.
    pub fn max_token_bytes(mut self, bytes: usize) -> Self {
        self.longest_token = bytes;
        self
    }

    /// Takes only tokens that are bound to a key, with a proof of that key in every request
    /// (RFC 9449). Without this such tokens are taken as well, and never without their proof.
    pub fn require_dpop(mut self) -> Self {
        self.proof_required = true;
        self
    }

    /// How old a proof may be.
    pub fn dpop_proof_lifetime(mut self, lifetime: Duration) -> Self {
        self.proof_lifetime = lifetime;
        self
    }

    /// How many proofs are remembered, so that none is used twice. When there are more, callers with
    /// proofs have to wait.
    pub fn dpop_replay_cache_size(mut self, proofs: usize) -> Self {
        self.proofs = proofs;
        self
    }

    /// Takes only proofs that contain a nonce of ours, which is a new one after each span of this
    /// length. Replicas need a secret that they share; without one each knows its own.
    pub fn dpop_nonces(mut self, span: Duration, secret: Option<&[u8]>) -> Self {
        self.nonces = Some((secret.map(<[u8]>::to_vec), span));
        self
    }

    /// How issuers are asked. By default over TLS, in the internet and in private networks.
    pub fn fetch(mut self, fetch: Fetcher) -> Self {
        self.fetch = Arc::new(fetch);
        self
    }

    /// Where time comes from.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The server.
    ///
    /// # Errors
    ///
    /// When the URI of the server or that of an issuer cannot be used.
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
        // A proof can be valid for its lifetime, and for as long as clocks may be apart both ways.
        let replay = Replay::new(lifetime.saturating_add(skew.saturating_mul(2)), self.proofs);
        Ok(Proofs { algorithms: Algorithms::ALL, lifetime, skew, replay, nonces })
    }
}

/// An issuer with its keys, unless it is asked about every token.
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
        return Err("it must be an `https:` URI without query and fragment".to_owned());
    }
    if before.iter().any(|other| other.id == issuer.id) {
        return Err("it is there twice".to_owned());
    }
    let asked = match &issuer.check {
        Check::Introspection(asking) => Some(asking.url()),
        Check::Keys(Source::Url(url)) => Some(&**url),
        Check::Keys(Source::Issuer) => Some(&*issuer.id),
        Check::Keys(Source::Fixed(_)) => None,
    };
    if issuer.any_audience && !matches!(issuer.check, Check::Introspection(_)) {
        let why = "a signed token has to say for whom it is; name that with `.audience(…)`";
        return Err(why.to_owned());
    }
    // Now, rather than when the first caller comes.
    asked.map_or(Ok(()), |url| fetch.check(url).map_err(|error| error.to_string()))
}

/// Whether a client wants to stay logged in is between it and the issuer.
fn without_offline(scopes: &Scopes) -> Scopes {
    Scopes::of(scopes.iter().filter(|scope| *scope != "offline_access"))
}

fn seconds(span: Duration) -> i64 {
    i64::try_from(span.as_secs()).unwrap_or(i64::MAX)
}

// Every setting is named, and a new one has to be: `docs/limits.md` is held against this.
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
            .field("fetch", &format_args!("…"))
            .field("clock", &format_args!("…"))
            .finish()
    }
}

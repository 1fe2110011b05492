//! Verification of DPoP proofs (RFC 9449).

use std::borrow::Cow;

use http::request::Parts;
use ring::digest;
use serde::Deserialize;

use super::{
    digest::{Digest, digest_of},
    nonce::Nonces,
    presented_token,
    replay::{Replay, Use},
    resource_uri::ResourceUri,
};
use crate::{
    jose::{Algorithms, Jws, encode_base64url},
    json,
};

/// Maximum length of a proof ID (`jti`). Proof IDs are random and need less.
const LONGEST_NAME: usize = 256;

/// Rules for verifying proofs.
pub(super) struct Proofs {
    pub(super) algorithms: Algorithms,
    /// Maximum age of a proof in seconds.
    pub(super) lifetime: i64,
    /// Permitted clock difference in seconds.
    pub(super) skew: i64,
    pub(super) replay: Replay,
    pub(super) nonces: Option<Nonces>,
}

/// Reason why a proof is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    Invalid(&'static str),
    /// The proof must contain this nonce.
    Nonce(String),
    /// The replay cache is full.
    NoRoom,
}

#[derive(Deserialize)]
struct Claimed<'a> {
    #[serde(borrow)]
    jti: Cow<'a, str>,
    #[serde(borrow)]
    htm: Cow<'a, str>,
    #[serde(borrow)]
    htu: Cow<'a, str>,
    iat: i64,
    #[serde(borrow, default)]
    ath: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    nonce: Option<Cow<'a, str>>,
}

impl Proofs {
    /// Verifies the proof of a request: the caller has the key with this thumbprint, and created
    /// the proof for this request and token.
    pub(super) fn check(
        &self,
        parts: &Parts,
        resource: &ResourceUri,
        key: &str,
        token: &Digest,
        now: i64,
    ) -> Result<(), Refused> {
        let invalid = |why| Err(Refused::Invalid(why));
        let proof = match presented_token::proof(parts) {
            Ok(Some(proof)) => proof,
            Ok(None) => return invalid("missing"),
            Err(()) => return invalid("more than one"),
        };
        let Ok(proof) = Jws::parse(proof) else { return invalid("malformed") };
        if !proof.header().is_kind("dpop+jwt") {
            return invalid("of another kind");
        }
        let Some(shown) = &proof.header().key else { return invalid("without a key") };
        // The thumbprint is compared before the signature is verified, because that is cheaper.
        if shown.thumbprint() != key {
            return invalid("of another key");
        }
        let Ok(said) = proof.verify([shown], self.algorithms) else {
            return invalid("badly signed");
        };
        let Some(claimed) = json::object::<Claimed<'_>>(said) else { return invalid("unreadable") };
        if claimed.htm != parts.method.as_str() {
            return invalid("for another method");
        }
        if !is_for(&claimed.htu, parts, resource) {
            return invalid("for another URL");
        }
        if claimed.iat > now + self.skew || claimed.iat < now - self.lifetime - self.skew {
            return invalid("too old, or from the future");
        }
        if claimed.ath.is_none_or(|hash| hash != encode_base64url(token)) {
            return invalid("for another token");
        }
        if let Some(nonces) = &self.nonces
            && !claimed.nonce.is_some_and(|nonce| nonces.is_good(&nonce, now))
        {
            return Err(Refused::Nonce(nonces.now(now)));
        }
        if claimed.jti.is_empty() || claimed.jti.len() > LONGEST_NAME {
            return invalid("without a valid `jti`");
        }
        // The proof ID is recorded last, so that a rejected proof does not count as used.
        match self.replay.enter(key, &used(key, &claimed.jti), now) {
            Use::First => Ok(()),
            Use::Again => invalid("used before"),
            Use::NoRoom => Err(Refused::NoRoom),
        }
    }
}

/// Returns whether a proof is for the URL of a request. A proxy may have changed scheme, host and
/// path, so the resource URI also matches.
fn is_for(url: &str, parts: &Parts, resource: &ResourceUri) -> bool {
    let Some(url) = ResourceUri::normal(url) else { return false };
    if url.origin() != resource.origin() {
        return false;
    }
    let path = |path: &str| if path.is_empty() { "/".to_owned() } else { path.to_owned() };
    path(url.path()) == path(resource.path()) || path(url.path()) == path(parts.uri.path())
}

/// Returns a cache key for a proof ID. Two keys may use the same ID.
fn used(key: &str, name: &str) -> Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(key.as_bytes());
    context.update(b".");
    context.update(name.as_bytes());
    digest_of(context)
}

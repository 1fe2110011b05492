//! DPoP proofs (RFC 9449): each request carries a proof, signed with the key that the token is
//! bound to.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::SystemTime,
};

use ring::{
    digest::{SHA256, digest},
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair},
};
use serde::Serialize;

use super::{random::random, url::Place};
use crate::jose::{Algorithm, KeyError, SigningKey, decode_base64url, encode_base64url};

/// Signature algorithm of proofs.
pub(super) const ALGORITHM: &str = "ES256";

/// A DPoP key, with the current nonce of each server.
pub(super) struct Prover {
    key: SigningKey,
    /// Key in the form in which it is stored.
    pkcs8: String,
    // A std mutex: no code awaits while it is held.
    nonces: Mutex<HashMap<String, String>>,
}

impl fmt::Debug for Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prover")
    }
}

impl Prover {
    pub(super) fn generate() -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        Self::read(&encode_base64url(made.map_err(|_| KeyError::Failed)?.as_ref()))
    }

    /// Reads a stored key.
    pub(super) fn read(kept: &str) -> Result<Self, KeyError> {
        let der = decode_base64url(kept).ok_or(KeyError::Malformed)?;
        let key = SigningKey::from_pkcs8(Algorithm::Es256, &der)?;
        Ok(Self { key, pkcs8: kept.to_owned(), nonces: Mutex::default() })
    }

    pub(super) fn kept(&self) -> &str {
        &self.pkcs8
    }

    /// Returns the thumbprint of the key, to which tokens are bound.
    pub(super) fn thumbprint(&self) -> String {
        self.key.public().thumbprint()
    }

    /// Creates a proof for one request and its token.
    pub(super) fn prove(
        &self,
        method: &str,
        url: &str,
        token: Option<&str>,
        now: SystemTime,
    ) -> Result<String, KeyError> {
        #[derive(Serialize)]
        struct Claims<'a> {
            jti: String,
            htm: &'a str,
            htu: &'a str,
            iat: u64,
            #[serde(skip_serializing_if = "Option::is_none")]
            ath: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            nonce: Option<String>,
        }
        let place = Place::parse(url).ok_or(KeyError::Failed)?;
        let claims = Claims {
            jti: random(16)?,
            htm: method,
            htu: place.without_query(),
            iat: seconds(now),
            ath: token.map(|token| encode_base64url(digest(&SHA256, token.as_bytes()))),
            nonce: self.nonces().get(place.origin()).cloned(),
        };
        self.key.sign_with_key("dpop+jwt", &claims)
    }

    /// Stores the nonce for the next proof.
    pub(super) fn heard(&self, url: &str, nonce: &str) {
        /// Maximum number of nonces. A token is used with fewer servers.
        const MOST: usize = 16;
        let Some(place) = Place::parse(url) else { return };
        let mut nonces = self.nonces();
        if nonces.len() >= MOST {
            nonces.clear();
        }
        nonces.insert(place.origin().to_owned(), nonce.to_owned());
    }

    fn nonces(&self) -> std::sync::MutexGuard<'_, HashMap<String, String>> {
        self.nonces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a time in Unix seconds, as in JWT claims.
pub(super) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

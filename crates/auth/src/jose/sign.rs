//! Private keys, and signing of tokens.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _,
        RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaKeyPair,
    },
};
use serde::Serialize;

use super::{Algorithm, Jwk, base64url};

/// A private key with its algorithm: ES256, EdDSA, RS256 or PS256.
pub struct SigningKey {
    pair: Pair,
    id: Option<String>,
}

enum Pair {
    Es256(EcdsaKeyPair),
    EdDsa(Ed25519KeyPair),
    Rs256(RsaKeyPair),
    Ps256(RsaKeyPair),
}

/// Reason why a key cannot be used. Discloses nothing about the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The data is not a PKCS#8 key for this algorithm.
    #[error("not a private key for this algorithm in PKCS#8 form")]
    Malformed,
    /// The algorithm is not supported for signing.
    #[error("cannot sign with this algorithm; use ES256, EdDSA, RS256 or PS256")]
    Unsupported,
    /// The system has no random bytes, or signing failed.
    #[error("signing failed")]
    Failed,
}

impl SigningKey {
    /// Generates a key for ES256 or EdDSA.
    pub fn generate(algorithm: Algorithm) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let pkcs8 = match algorithm {
            Algorithm::Es256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random)
            }
            Algorithm::EdDsa => Ed25519KeyPair::generate_pkcs8(&random),
            _ => return Err(KeyError::Unsupported),
        };
        Self::from_pkcs8(algorithm, pkcs8.map_err(|_| KeyError::Failed)?.as_ref())
    }

    /// Parses a key in DER form (PKCS#8).
    pub fn from_pkcs8(algorithm: Algorithm, der: &[u8]) -> Result<Self, KeyError> {
        let rsa = || RsaKeyPair::from_pkcs8(der).map_err(|_| KeyError::Malformed);
        let pair = match algorithm {
            Algorithm::Es256 => EcdsaKeyPair::from_pkcs8(
                &ECDSA_P256_SHA256_FIXED_SIGNING,
                der,
                &SystemRandom::new(),
            )
            .map(Pair::Es256)
            .map_err(|_| KeyError::Malformed)?,
            // Some programs omit the public key, which is allowed.
            Algorithm::EdDsa => Ed25519KeyPair::from_pkcs8_maybe_unchecked(der)
                .map(Pair::EdDsa)
                .map_err(|_| KeyError::Malformed)?,
            Algorithm::Rs256 => Pair::Rs256(rsa()?),
            Algorithm::Ps256 => Pair::Ps256(rsa()?),
            _ => return Err(KeyError::Unsupported),
        };
        Ok(Self { pair, id: None })
    }

    /// Parses a key in PEM form (PKCS#8), `-----BEGIN PRIVATE KEY-----`.
    pub fn from_pem(algorithm: Algorithm, pem: &str) -> Result<Self, KeyError> {
        let (_, rest) = pem.split_once("-----BEGIN PRIVATE KEY-----").ok_or(KeyError::Malformed)?;
        let (body, _) = rest.split_once("-----END PRIVATE KEY-----").ok_or(KeyError::Malformed)?;
        let body: String = body.split_ascii_whitespace().collect();
        let der = STANDARD.decode(body).map_err(|_| KeyError::Malformed)?;
        Self::from_pkcs8(algorithm, &der)
    }

    /// Parses a key in PEM form (PKCS#8) whose type determines the algorithm: ES256 for P-256, EdDSA
    /// for Ed25519, RS256 for RSA.
    pub fn from_any_pem(pem: &str) -> Result<Self, KeyError> {
        let algorithms = [Algorithm::Es256, Algorithm::EdDsa, Algorithm::Rs256];
        let mut keys = algorithms.into_iter().map(|algorithm| Self::from_pem(algorithm, pem));
        keys.find_map(Result::ok).ok_or(KeyError::Malformed)
    }

    /// Sets the key ID, which tokens then contain as `kid`.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        match &self.pair {
            Pair::Es256(_) => Algorithm::Es256,
            Pair::EdDsa(_) => Algorithm::EdDsa,
            Pair::Rs256(_) => Algorithm::Rs256,
            Pair::Ps256(_) => Algorithm::Ps256,
        }
    }

    /// Returns the public key, with the key ID if there is one.
    pub fn public(&self) -> Jwk {
        match &self.id {
            Some(id) => self.nameless().with_id(id.clone()),
            None => self.nameless(),
        }
    }

    fn nameless(&self) -> Jwk {
        match &self.pair {
            Pair::Es256(pair) => Jwk::p256(pair.public_key().as_ref()),
            Pair::EdDsa(pair) => Jwk::ed25519(pair.public_key().as_ref()),
            Pair::Rs256(pair) | Pair::Ps256(pair) => {
                let parts = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(pair.public_key());
                Jwk::rsa(&parts.n, &parts.e)
            }
        }
    }

    /// Signs a token with these claims and a type such as `JWT` or `at+jwt`.
    pub fn sign(&self, kind: &str, claims: &impl Serialize) -> Result<String, KeyError> {
        self.sign_as(kind, None, claims)
    }

    /// Signs a token with the public key in its header, as a proof of possession.
    pub fn sign_with_key(&self, kind: &str, claims: &impl Serialize) -> Result<String, KeyError> {
        // The header contains the key, so a key ID is redundant.
        let json = self.nameless().to_json();
        let raw = serde_json::value::RawValue::from_string(json).map_err(|_| KeyError::Failed)?;
        self.sign_as(kind, Some(&raw), claims)
    }

    fn sign_as(
        &self,
        kind: &str,
        jwk: Option<&serde_json::value::RawValue>,
        claims: &impl Serialize,
    ) -> Result<String, KeyError> {
        #[derive(Serialize)]
        struct Header<'a> {
            alg: &'static str,
            typ: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            kid: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            jwk: Option<&'a serde_json::value::RawValue>,
        }
        let kid = if jwk.is_some() { None } else { self.id.as_deref() };
        let header = Header { alg: self.algorithm().as_str(), typ: kind, kid, jwk };
        let json = |part: Result<Vec<u8>, serde_json::Error>| {
            part.map(base64url::encode).map_err(|_| KeyError::Failed)
        };
        let mut token = json(serde_json::to_vec(&header))?;
        token.push('.');
        token.push_str(&json(serde_json::to_vec(claims))?);
        let signature = self.signature(token.as_bytes())?;
        token.push('.');
        token.push_str(&base64url::encode(signature));
        Ok(token)
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let random = SystemRandom::new();
        let rsa = |pair: &RsaKeyPair, padding| {
            let mut signature = vec![0; pair.public().modulus_len()];
            pair.sign(padding, &random, message, &mut signature).map(|()| signature)
        };
        match &self.pair {
            Pair::Es256(pair) => pair.sign(&random, message).map(|made| made.as_ref().to_vec()),
            Pair::EdDsa(pair) => Ok(pair.sign(message).as_ref().to_vec()),
            Pair::Rs256(pair) => rsa(pair, &RSA_PKCS1_SHA256),
            Pair::Ps256(pair) => rsa(pair, &RSA_PSS_SHA256),
        }
        .map_err(|_| KeyError::Failed)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("algorithm", &self.algorithm())
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

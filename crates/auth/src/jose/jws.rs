//! Signed tokens in compact form (JWS).
//!
//! Only [`Jws::verify`] returns the payload, except for [`Jws::unverified`]: the issuer of a token
//! must be known before its key can be found.

use std::{borrow::Cow, fmt};

use serde::Deserialize;

use super::{Algorithm, Algorithms, Jwk, JwkSet, base64url};
use crate::json;

/// A parsed token whose signature has not been verified.
pub struct Jws<'a> {
    /// Header and payload, which the signature covers.
    signed: &'a str,
    header: Header,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// Header of a token. Its content is not verified.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Header {
    /// Signature algorithm, `alg`.
    pub algorithm: Algorithm,
    /// Key ID, `kid`.
    pub key_id: Option<String>,
    /// Token type, `typ`.
    pub kind: Option<String>,
    /// Public key in the header, for tokens that prove possession of a key.
    pub key: Option<Jwk>,
}

/// Reason why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwsError {
    /// The text is not a signed token.
    #[error("not a signed token in compact form")]
    Malformed,
    /// The algorithm is not accepted, or the token is not signed.
    #[error("the algorithm is not accepted")]
    Algorithm,
    /// The token has a critical header that is not supported.
    #[error("a critical header is not supported")]
    Critical,
    /// No key matches the signature.
    #[error("the signature does not match the key")]
    Signature,
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    alg: Cow<'a, str>,
    #[serde(borrow, default)]
    kid: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    typ: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    jwk: Option<&'a serde_json::value::RawValue>,
    #[serde(default)]
    crit: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    b64: Option<serde::de::IgnoredAny>,
}

impl<'a> Jws<'a> {
    /// Parses a token.
    pub fn parse(token: &'a str) -> Result<Self, JwsError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JwsError::Malformed)?;
        let part = |text: &str| base64url::decode(text).ok_or(JwsError::Malformed);
        let header = Header::read(&part(header)?)?;
        Ok(Self { signed, header, payload: part(payload)?, signature: part(signature)? })
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the payload if one of the keys has signed the token.
    pub fn verify<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k Jwk>,
        accepted: Algorithms,
    ) -> Result<&[u8], JwsError> {
        let algorithm = self.header.algorithm;
        if !accepted.contains(algorithm) {
            return Err(JwsError::Algorithm);
        }
        let signed = self.signed.as_bytes();
        let made = keys.into_iter().any(|key| key.verify(algorithm, signed, &self.signature));
        if made { Ok(&self.payload) } else { Err(JwsError::Signature) }
    }

    /// Returns the payload if a key of the set has signed the token. The token's `kid` selects the
    /// key.
    pub fn verify_with(&self, keys: &JwkSet, accepted: Algorithms) -> Result<&[u8], JwsError> {
        let named = keys.candidates(self.header.key_id.as_deref(), self.header.algorithm);
        self.verify(named, accepted)
    }

    /// Returns the payload without verification. Use it only to find the issuer.
    pub fn unverified(&self) -> &[u8] {
        &self.payload
    }
}

impl fmt::Debug for Jws<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jws").field("header", &self.header).finish_non_exhaustive()
    }
}

impl Header {
    fn read(json: &[u8]) -> Result<Self, JwsError> {
        let written: Written<'_> = json::object(json).ok_or(JwsError::Malformed)?;
        if written.crit.is_some() || written.b64.is_some() {
            return Err(JwsError::Critical);
        }
        let key = match written.jwk {
            None => None,
            Some(key) => Some(Jwk::from_json(key.get()).map_err(|_| JwsError::Malformed)?),
        };
        Ok(Self {
            algorithm: Algorithm::from_name(&written.alg).ok_or(JwsError::Algorithm)?,
            key_id: written.kid.map(Cow::into_owned),
            kind: written.typ.map(Cow::into_owned),
            key,
        })
    }

    /// Returns whether `typ` is this media type. Ignores case and the prefix `application/`.
    pub fn is_kind(&self, kind: &str) -> bool {
        self.kind.as_deref().is_some_and(|said| {
            let prefix = "application/";
            let short = match said.split_at_checked(prefix.len()) {
                Some((front, rest)) if front.eq_ignore_ascii_case(prefix) => rest,
                _ => said,
            };
            short.eq_ignore_ascii_case(kind)
        })
    }
}

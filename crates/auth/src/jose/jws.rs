//! A token in its compact form: three parts, of which the last vouches for the first two.
//!
//! What a token says is handed out by [`Jws::verify`] alone. The one exception has a name that
//! warns: which issuer a token claims has to be known before its key can be found.

use std::{borrow::Cow, fmt};

use serde::Deserialize;

use super::{Algorithm, Algorithms, Jwk, JwkSet, base64url};
use crate::json;

/// A token that has been read, and not yet believed.
pub struct Jws<'a> {
    /// The first two parts, which are signed.
    signed: &'a str,
    header: Header,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

/// What a token says about its own signature. Nobody has vouched for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Header {
    /// How it is signed.
    pub algorithm: Algorithm,
    /// With which key.
    pub key_id: Option<String>,
    /// What kind of token it is, `typ`.
    pub kind: Option<String>,
    /// The key itself, in tokens that prove that one has it.
    pub key: Option<Jwk>,
}

/// Why a token is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwsError {
    /// It is not a signed token.
    #[error("not a signed token in compact form")]
    Malformed,
    /// It is signed in a way that is not accepted, or not at all.
    #[error("the algorithm is not accepted")]
    Algorithm,
    /// It says that one must understand something that is not understood here.
    #[error("a critical header is not understood")]
    Critical,
    /// None of the keys has made its signature.
    #[error("the signature is not of the key")]
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
    /// Reads a token.
    pub fn parse(token: &'a str) -> Result<Self, JwsError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, payload) = signed.split_once('.').ok_or(JwsError::Malformed)?;
        let part = |text: &str| base64url::decode(text).ok_or(JwsError::Malformed);
        let header = Header::read(&part(header)?)?;
        Ok(Self { signed, header, payload: part(payload)?, signature: part(signature)? })
    }

    /// What it says about its signature.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What it says, once one of the keys is known to have signed it.
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

    /// What it says, once the key of a set that it names is known to have signed it.
    pub fn verify_with(&self, keys: &JwkSet, accepted: Algorithms) -> Result<&[u8], JwsError> {
        let named = keys.candidates(self.header.key_id.as_deref(), self.header.algorithm);
        self.verify(named, accepted)
    }

    /// What it says, which anybody may have written. Only to find out whom to ask about it.
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

    /// Whether `typ` is this media type, also without `application/` and in other letters.
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

//! Public keys as JSON (RFC 7517, 7518, 8037), and their thumbprints (RFC 7638).
//!
//! Symmetric keys are not supported. A key with a private part is rejected, because a published
//! private key is compromised.

use std::{borrow::Cow, fmt};

use ring::{digest, signature as ring_signature};
use serde::{Deserialize, Serialize};

use super::{Algorithm, base64url};
use crate::json;

/// Maximum number of keys that are read from a set. Providers publish a handful.
const MAX_KEYS: usize = 100;

/// Supported length of an RSA modulus in bytes: 2048 to 8192 bits, the limits of `ring`.
const MODULUS: std::ops::RangeInclusive<usize> = 256..=1024;

/// A public key with its metadata.
#[derive(Clone, PartialEq, Eq)]
pub struct Jwk {
    id: Option<Box<str>>,
    algorithm: Option<Algorithm>,
    key: Key,
}

#[derive(Clone, PartialEq, Eq)]
enum Key {
    Rsa {
        n: Box<[u8]>,
        e: Box<[u8]>,
    },
    /// Uncompressed point: 4, x, y.
    P256(Box<[u8]>),
    P384(Box<[u8]>),
    Ed25519(Box<[u8]>),
}

/// Reason why a key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JwkError {
    /// The key is not a valid JSON Web Key.
    #[error("the key is not a JSON Web Key")]
    Malformed,
    /// The type of the key is not supported, or the key is symmetric.
    #[error("the key type is not supported for signatures")]
    Unsupported,
    /// The key is not intended for signatures.
    #[error("the key is not intended for signatures")]
    NotForSignatures,
    /// The key contains a private part.
    #[error("the key contains a private part")]
    Private,
}

/// Serialized form of a key.
#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    kty: Cow<'a, str>,
    #[serde(borrow, default)]
    kid: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "use")]
    usage: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    key_ops: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow, default)]
    alg: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    crv: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    x: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    y: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    n: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    e: Option<Cow<'a, str>>,
    #[serde(default)]
    d: Option<serde::de::IgnoredAny>,
}

impl Jwk {
    /// Parses a key.
    pub fn from_json(json: &str) -> Result<Self, JwkError> {
        let written: Written<'_> = json::object(json.as_bytes()).ok_or(JwkError::Malformed)?;
        if written.d.is_some() {
            return Err(JwkError::Private);
        }
        let verifies = |ops: &Vec<Cow<'_, str>>| ops.iter().any(|op| op == "verify");
        if written.usage.as_deref().is_some_and(|usage| usage != "sig")
            || !written.key_ops.as_ref().is_none_or(verifies)
        {
            return Err(JwkError::NotForSignatures);
        }
        let key = Key::read(&written)?;
        let algorithm = match written.alg.as_deref().map(Algorithm::from_name) {
            None => None,
            Some(Some(algorithm)) if key.fits(algorithm) => Some(algorithm),
            Some(_) => return Err(JwkError::Unsupported),
        };
        Ok(Self { id: written.kid.map(|id| id.into()), algorithm, key })
    }

    pub(super) fn rsa(n: &[u8], e: &[u8]) -> Self {
        Self::plain(Key::Rsa { n: n.into(), e: e.into() })
    }

    pub(super) fn p256(point: &[u8]) -> Self {
        Self::plain(Key::P256(point.into()))
    }

    pub(super) fn ed25519(key: &[u8]) -> Self {
        Self::plain(Key::Ed25519(key.into()))
    }

    fn plain(key: Key) -> Self {
        Self { id: None, algorithm: None, key }
    }

    /// Sets the key ID, `kid`.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into().into_boxed_str());
        self
    }

    /// Restricts the key to an algorithm.
    #[must_use]
    pub fn with_algorithm(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// Returns the key ID, `kid`.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns whether the key can verify signatures of this algorithm.
    pub fn fits(&self, algorithm: Algorithm) -> bool {
        self.algorithm.is_none_or(|only| only == algorithm) && self.key.fits(algorithm)
    }

    /// Returns the SHA-256 thumbprint, as in `cnf.jkt`.
    pub fn thumbprint(&self) -> String {
        base64url::encode(digest::digest(&digest::SHA256, self.key.json().as_bytes()))
    }

    /// Returns the key as JSON, with its ID and algorithm.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct About<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            kid: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            alg: Option<&'static str>,
        }
        let about = About { kid: self.id(), alg: self.algorithm.map(Algorithm::as_str) };
        let about = serde_json::to_string(&about).expect("strings always serialize");
        let key = self.key.json();
        match about.strip_prefix('{').filter(|rest| *rest != "}") {
            Some(rest) => format!("{},{rest}", &key[..key.len() - 1]),
            None => key,
        }
    }

    pub(super) fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        if !self.fits(algorithm) {
            return false;
        }
        let verified = match &self.key {
            Key::Rsa { n, e } => {
                let Some(parameters) = rsa_parameters(algorithm) else { return false };
                let key = ring_signature::RsaPublicKeyComponents { n, e };
                key.verify(parameters, message, signature)
            }
            Key::P256(point) => {
                unparsed(&ring_signature::ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            Key::P384(point) => {
                unparsed(&ring_signature::ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            Key::Ed25519(key) => unparsed(&ring_signature::ED25519, key).verify(message, signature),
        };
        verified.is_ok()
    }
}

fn unparsed<'a>(
    algorithm: &'static dyn ring_signature::VerificationAlgorithm,
    key: &'a [u8],
) -> ring_signature::UnparsedPublicKey<&'a [u8]> {
    ring_signature::UnparsedPublicKey::new(algorithm, key)
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static ring_signature::RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs256 => &ring_signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs384 => &ring_signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs512 => &ring_signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps256 => &ring_signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &ring_signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &ring_signature::RSA_PSS_2048_8192_SHA512,
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
    })
}

impl Key {
    fn read(written: &Written<'_>) -> Result<Self, JwkError> {
        let bytes = |text: &Option<Cow<'_, str>>| {
            text.as_deref().and_then(base64url::decode).ok_or(JwkError::Malformed)
        };
        let exactly = |text, length: usize| {
            bytes(text).and_then(|bytes| {
                if bytes.len() == length { Ok(bytes) } else { Err(JwkError::Malformed) }
            })
        };
        let point = |length| {
            let (x, y) = (exactly(&written.x, length)?, exactly(&written.y, length)?);
            Ok([&[4], x.as_slice(), y.as_slice()].concat().into_boxed_slice())
        };
        match (written.kty.as_ref(), written.crv.as_deref()) {
            ("RSA", _) => {
                // Some issuers write a leading zero, which is not allowed and which `ring` rejects.
                let n = bytes(&written.n)?;
                let n = &n[n.iter().position(|byte| *byte != 0).unwrap_or(n.len())..];
                let e = bytes(&written.e)?;
                if !MODULUS.contains(&n.len()) || e.is_empty() || e.len() > 5 {
                    return Err(JwkError::Unsupported);
                }
                Ok(Self::Rsa { n: n.into(), e: e.into() })
            }
            ("EC", Some("P-256")) => Ok(Self::P256(point(32)?)),
            ("EC", Some("P-384")) => Ok(Self::P384(point(48)?)),
            ("OKP", Some("Ed25519")) => Ok(Self::Ed25519(exactly(&written.x, 32)?.into())),
            _ => Err(JwkError::Unsupported),
        }
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        match self {
            Self::Rsa { .. } => rsa_parameters(algorithm).is_some(),
            Self::P256(_) => algorithm == Algorithm::Es256,
            Self::P384(_) => algorithm == Algorithm::Es384,
            Self::Ed25519(_) => algorithm == Algorithm::EdDsa,
        }
    }

    /// Returns the members of the key in the order of RFC 7638.
    fn json(&self) -> String {
        let text = |bytes: &[u8]| base64url::encode(bytes);
        match self {
            Self::Rsa { n, e } => {
                format!(r#"{{"e":"{}","kty":"RSA","n":"{}"}}"#, text(e), text(n))
            }
            Self::P256(point) => {
                let (x, y) = point[1..].split_at(32);
                format!(r#"{{"crv":"P-256","kty":"EC","x":"{}","y":"{}"}}"#, text(x), text(y))
            }
            Self::P384(point) => {
                let (x, y) = point[1..].split_at(48);
                format!(r#"{{"crv":"P-384","kty":"EC","x":"{}","y":"{}"}}"#, text(x), text(y))
            }
            Self::Ed25519(key) => {
                format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, text(key))
            }
        }
    }
}

impl fmt::Debug for Jwk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jwk").field("id", &self.id).field("thumbprint", &self.thumbprint()).finish()
    }
}

/// Keys of an issuer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JwkSet {
    keys: Vec<Jwk>,
}

impl JwkSet {
    /// Creates a set of these keys.
    pub fn new(keys: impl IntoIterator<Item = Jwk>) -> Self {
        Self { keys: keys.into_iter().collect() }
    }

    /// Parses a set. Skips unsupported keys, as RFC 7517 requires: an issuer may publish keys for
    /// other purposes.
    pub fn from_json(json: &[u8]) -> Result<Self, JwkError> {
        #[derive(Deserialize)]
        struct Written<'a> {
            #[serde(borrow)]
            keys: Vec<&'a serde_json::value::RawValue>,
        }
        let written: Written<'_> = json::object(json).ok_or(JwkError::Malformed)?;
        let keys = written.keys.iter().take(MAX_KEYS);
        Ok(Self { keys: keys.filter_map(|key| Jwk::from_json(key.get()).ok()).collect() })
    }

    /// Returns the keys.
    pub fn keys(&self) -> &[Jwk] {
        &self.keys
    }

    /// Returns the keys that may have made a signature: those with this ID, or all that fit if the
    /// ID is `None`.
    pub fn candidates<'a>(
        &'a self,
        id: Option<&'a str>,
        algorithm: Algorithm,
    ) -> impl Iterator<Item = &'a Jwk> {
        self.keys
            .iter()
            .filter(move |key| id.is_none_or(|id| key.id() == Some(id)) && key.fits(algorithm))
    }

    /// Returns the set as JSON, for publication.
    pub fn to_json(&self) -> String {
        let keys: Vec<String> = self.keys.iter().map(Jwk::to_json).collect();
        format!(r#"{{"keys":[{}]}}"#, keys.join(","))
    }
}

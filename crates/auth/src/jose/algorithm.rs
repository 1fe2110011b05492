//! Signature algorithms. All of them use key pairs; shared secrets are not supported.

use std::fmt;

/// A signature algorithm (RFC 7518, RFC 8037).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSA with PKCS#1 v1.5 and SHA-256.
    Rs256,
    /// RSA with PKCS#1 v1.5 and SHA-384.
    Rs384,
    /// RSA with PKCS#1 v1.5 and SHA-512.
    Rs512,
    /// RSA-PSS with SHA-256.
    Ps256,
    /// RSA-PSS with SHA-384.
    Ps384,
    /// RSA-PSS with SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 9] = [
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::Es256,
        Self::Es384,
        Self::EdDsa,
    ];

    /// Returns the name of the algorithm in `alg`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::EdDsa => "EdDSA",
        }
    }

    /// Returns the algorithm with this name. `Ed25519` is the newer name of `EdDSA` on that curve
    /// (RFC 9864).
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "Ed25519" {
            return Some(Self::EdDsa);
        }
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of accepted algorithms.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Algorithms(u16);

impl Algorithms {
    /// All algorithms.
    pub const ALL: Self = Self((1 << Algorithm::ALL.len()) - 1);

    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Creates a set of these algorithms.
    pub fn of(algorithms: impl IntoIterator<Item = Algorithm>) -> Self {
        Self(algorithms.into_iter().fold(0, |set, algorithm| set | 1 << algorithm as u16))
    }

    /// Returns whether the set contains an algorithm.
    pub fn contains(self, algorithm: Algorithm) -> bool {
        self.0 & (1 << algorithm as u16) != 0
    }

    /// Returns the algorithms in the set.
    pub fn iter(self) -> impl Iterator<Item = Algorithm> {
        Algorithm::ALL.into_iter().filter(move |algorithm| self.contains(*algorithm))
    }
}

impl fmt::Debug for Algorithms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

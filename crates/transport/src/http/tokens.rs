//! Authenticator with tokens from a file.

use std::{
    collections::HashMap,
    fmt, fs,
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
};

use http::request::Parts;
use outlive_protocol::{Principal, Scopes};
use subtle::ConstantTimeEq;

use super::auth::{AuthDecision, AuthRejection, Authenticator, bearer};

/// Minimum token length. Shorter tokens can be guessed.
const SHORTEST: usize = 16;

/// Third word of a line whose token decides in the console.
const DECIDE: &str = "decide";

/// Bearer tokens and their principals.
///
/// Tokens are looked up by a keyed hash and compared in constant time, so response times disclose
/// nothing about a token.
#[derive(Clone, Default)]
pub struct StaticTokens {
    hasher: RandomState,
    by_hash: HashMap<u64, Vec<Known>>,
}

#[derive(Clone)]
struct Known {
    token: Box<[u8]>,
    principal: Principal,
}

impl StaticTokens {
    /// Creates an authenticator without tokens, which rejects every request.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token for the principal `name`.
    #[must_use]
    pub fn with(self, name: &str, token: &str) -> Self {
        self.add(token, Principal::named(name))
    }

    /// Adds a token for the principal `name` with scopes.
    #[must_use]
    pub fn with_scopes<S: AsRef<str>>(
        self,
        name: &str,
        token: &str,
        scopes: impl IntoIterator<Item = S>,
    ) -> Self {
        self.add(token, Principal::named(name).with_scopes(Scopes::of(scopes)))
    }

    /// Adds a token with which the person `name` decides in the console. The MCP endpoint rejects
    /// it.
    #[must_use]
    pub fn with_deciding(self, name: &str, token: &str) -> Self {
        self.add(token, Principal::named(name).deciding())
    }

    /// Returns the number of tokens.
    pub fn len(&self) -> usize {
        self.by_hash.values().map(Vec::len).sum()
    }

    /// Returns whether no token is present. Every request is then rejected.
    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    /// Adds a token. Replaces the principal of an existing token.
    fn add(mut self, token: &str, principal: Principal) -> Self {
        let token = Box::from(token.as_bytes());
        let known = self.by_hash.entry(self.hasher.hash_one(&token)).or_default();
        known.retain(|before| before.token != token);
        known.push(Known { token, principal });
        self
    }

    fn find(&self, token: &[u8]) -> Option<&Principal> {
        let known = self.by_hash.get(&self.hasher.hash_one(token))?;
        let is_it = |known: &&Known| bool::from(known.token.ct_eq(token));
        known.iter().find(is_it).map(|known| &known.principal)
    }

    /// Reads a file with one `name token` per line. Skips empty lines and lines that start with
    /// `#`. A line `name token decide` is a token with which that person decides in the console.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or a line is malformed, if a token is shorter
    /// than 16 characters, or if a token has two names or two purposes.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, TokenFileError> {
        let path = path.as_ref();
        let text = fs::read_to_string(path)
            .map_err(|source| TokenFileError::Unreadable { path: path.to_owned(), source })?;
        let mut tokens = Self::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad =
                |what| TokenFileError::BadLine { path: path.to_owned(), line: index + 1, what };
            let mut words = line.split_whitespace();
            let (Some(name), Some(token)) = (words.next(), words.next()) else {
                return Err(bad("has no token"));
            };
            if token.len() < SHORTEST {
                return Err(bad("has a token of fewer than 16 characters"));
            }
            let decides = match (words.next(), words.next()) {
                (None, _) => false,
                (Some(DECIDE), None) => true,
                _ => return Err(bad("has more words than a token and `decide`")),
            };
            if let Some(known) = tokens.find(token.as_bytes()) {
                if *known != Principal::named(name) {
                    return Err(bad("has the token of another name"));
                }
                if known.is_deciding() != decides {
                    return Err(bad("has a token that another line uses with another purpose"));
                }
            }
            tokens =
                if decides { tokens.with_deciding(name, token) } else { tokens.with(name, token) };
        }
        Ok(tokens)
    }
}

impl Authenticator for StaticTokens {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a> {
        AuthDecision::Now(match bearer(parts) {
            None => Err(AuthRejection::no_token()),
            Some(token) => self.find(token).cloned().ok_or_else(AuthRejection::invalid_token),
        })
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTokens").field("tokens", &self.len()).finish()
    }
}

/// Error in a token file.
#[derive(Debug)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A line is neither `name token` nor `name token decide`.
    BadLine {
        /// Path of the file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
        /// Error in the line.
        what: &'static str,
    },
}

impl fmt::Display for TokenFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, source } => {
                write!(f, "could not read the token file {}: {source}", path.display())
            }
            Self::BadLine { path, line, what } => {
                write!(
                    f,
                    "{}:{line} {what}; write one `name token` or `name token decide` per line",
                    path.display()
                )
            }
        }
    }
}

impl std::error::Error for TokenFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } => Some(source),
            Self::BadLine { .. } => None,
        }
    }
}

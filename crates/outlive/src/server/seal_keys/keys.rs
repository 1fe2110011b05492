//! The keys that seal what clients carry for a server, and where they are kept.

use std::{fmt, io, path::PathBuf};

use outlive_protocol::Seal;

pub(crate) type Key = [u8; 32];

/// Keys for [`ServerBuilder::seal_keys`](crate::server::ServerBuilder::seal_keys): one that seals, and
/// those from before it that still open.
///
/// To replace a key, make a new one the current one and keep the old one as a previous one for as
/// long as anything sealed with it may come back. Replicas need the same keys; give all of them the
/// new key as a previous one first, so that none meets a token that it cannot open.
///
/// ```no_run
/// use outlive::server::{SealKeys, Server};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::builder("notes", "1.0.0").seal_keys(SealKeys::for_user("notes")?).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SealKeys {
    pub(crate) current: Key,
    pub(crate) previous: Vec<Key>,
}

impl SealKeys {
    /// One key, which has to be secret and random.
    pub fn new(current: [u8; 32]) -> Self {
        Self { current, previous: Vec::new() }
    }

    /// Adds a key that opens but does not seal any more.
    #[must_use]
    pub fn with_previous(mut self, key: [u8; 32]) -> Self {
        self.previous.push(key);
        self
    }

    /// A new key that is kept nowhere: what it seals ends with the process.
    ///
    /// # Errors
    ///
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<Self, SealKeysError> {
        match Seal::random_key() {
            Ok(key) => Ok(Self::new(key)),
            Err(error) => Err(SealKeysError::NoRandomBytes { reason: error.to_string() }),
        }
    }

    pub(crate) fn into_seal(self) -> Seal {
        self.previous.into_iter().fold(Seal::new(self.current), Seal::with_previous)
    }
}

impl fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SealKeys({} previous)", self.previous.len())
    }
}

/// Why there are no keys. The text says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum SealKeysError {
    /// The operating system gives no random bytes.
    NoRandomBytes {
        /// What it says.
        reason: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The file is not there and cannot be made.
    NotMade {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// Others than its owner may read or write the file.
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// There is no key in the file.
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A line of the file is no key. What stands there is not told: it may be most of one.
    BadLine {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// The name cannot be that of a file.
    BadName {
        /// The name.
        name: String,
    },
    /// The environment does not say where the user's programs keep their state.
    NoStateFolder,
}

impl fmt::Display for SealKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRandomBytes { reason } => {
                write!(f, "no random bytes for a key: {reason}; bring one with `SealKeys::new`")
            }
            Self::Unreadable { path, source } => write!(
                f,
                "could not read the key file {}: {source}; let this user read it, or name another",
                path.display()
            ),
            Self::NotMade { path, source } => write!(
                f,
                "could not make the key file {}: {source}; let this user write to its folder, or name another file",
                path.display()
            ),
            Self::OpenToOthers { path, mode } => write!(
                f,
                "the key file {path} is open to other users (mode {mode:03o}); run `chmod 600 '{path}'`, and replace its keys if others may have read them",
                path = path.display()
            ),
            Self::NoKey { path } => write!(
                f,
                "there is no key in the key file {}; write one as 64 hex digits, or remove the file to have it made",
                path.display()
            ),
            Self::BadLine { path, line } => write!(
                f,
                "{}:{line} is no key; write one key per line as 64 hex digits, and `#` before remarks",
                path.display()
            ),
            Self::BadName { name } => write!(
                f,
                "{name:?} cannot name a key file; use letters, digits, `-`, `_` and `.`, and no dot at the beginning"
            ),
            Self::NoStateFolder => {
                let variables =
                    if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME or HOME" };
                write!(
                    f,
                    "no folder for the key file: set {variables} to an absolute path, or name the file with `SealKeys::from_file`"
                )
            }
        }
    }
}

impl std::error::Error for SealKeysError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreadable { source, .. } | Self::NotMade { source, .. } => Some(source),
            _ => None,
        }
    }
}

//! Keys that seal the data that clients hold for a server.

use std::{fmt, io, path::PathBuf};

use outlive_protocol::Seal;

pub(crate) type Key = [u8; 32];

/// Keys for [`ServerBuilder::seal_keys`](crate::server::ServerBuilder::seal_keys): the current key,
/// which seals, and previous keys, which only open.
///
/// To rotate a key, make a new key current and keep the old key as a previous one until data sealed
/// with it has expired. Replicas share the keys. First add the new key to all replicas as a
/// previous key, so that every replica can open data sealed with it.
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
    /// Returns keys with one current key, which must be secret and random.
    pub fn new(current: [u8; 32]) -> Self {
        Self { current, previous: Vec::new() }
    }

    /// Adds a key that opens but no longer seals.
    #[must_use]
    pub fn with_previous(mut self, key: [u8; 32]) -> Self {
        self.previous.push(key);
        self
    }

    /// Returns a random key that is not stored. Data sealed with it becomes invalid when the
    /// process ends.
    ///
    /// # Errors
    ///
    /// Returns an error if the operating system has no random bytes.
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

/// Reason why keys cannot be loaded or created. The message names the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum SealKeysError {
    /// The operating system has no random bytes.
    NoRandomBytes {
        /// Error of the operating system.
        reason: String,
    },
    /// The file cannot be read.
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file does not exist and cannot be created.
    NotMade {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Users other than the owner can read or write the file.
    OpenToOthers {
        /// Path of the file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// The file contains no key.
    NoKey {
        /// Path of the file.
        path: PathBuf,
    },
    /// A line of the file is not a key. The error omits the line, which may contain most of a key.
    BadLine {
        /// Path of the file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
    },
    /// The name is not valid for a key file.
    BadName {
        /// The invalid name.
        name: String,
    },
    /// The environment does not define a state folder for the user.
    NoStateFolder,
}

impl fmt::Display for SealKeysError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRandomBytes { reason } => {
                write!(f, "no random bytes for a key: {reason}; pass one with `SealKeys::new`")
            }
            Self::Unreadable { path, source } => write!(
                f,
                "cannot read the key file {}: {source}; grant this user read access, or use another file",
                path.display()
            ),
            Self::NotMade { path, source } => write!(
                f,
                "cannot create the key file {}: {source}; grant this user write access to its folder, or use another file",
                path.display()
            ),
            Self::OpenToOthers { path, mode } => write!(
                f,
                "the key file {path} is accessible to other users (mode {mode:03o}); run `chmod 600 '{path}'`, and rotate its keys if they may have been read",
                path = path.display()
            ),
            Self::NoKey { path } => write!(
                f,
                "the key file {} contains no key; add one as 64 hex digits, or remove the file to create a new one",
                path.display()
            ),
            Self::BadLine { path, line } => write!(
                f,
                "{}:{line} is not a key; use one key per line with 64 hex digits, and `#` for comments",
                path.display()
            ),
            Self::BadName { name } => write!(
                f,
                "{name:?} is not a valid key file name; use letters, digits, `-`, `_` and `.`, without a leading dot"
            ),
            Self::NoStateFolder => {
                let variables =
                    if cfg!(windows) { "LOCALAPPDATA" } else { "XDG_STATE_HOME or HOME" };
                write!(
                    f,
                    "no state folder for the key file; set {variables} to an absolute path, or use `SealKeys::from_file`"
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

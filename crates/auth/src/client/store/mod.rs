//! Where credentials are kept between requests, and between processes.

mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod memory;
#[cfg(feature = "keyring")]
mod system;

pub use file::FileStore;
pub use memory::MemoryStore;
#[cfg(feature = "keyring")]
pub use system::{CredentialLocation, KeyringStore};

use std::io;

use outlive_transport::client::SecretString;

use super::url::Place;

/// Keeps secrets under names.
///
/// What is kept and under which name is the client's: one entry for each authorization server that
/// it has registered with, one for each MCP server that it has tokens for. Methods may block; they
/// are called where that harms nobody.
pub trait CredentialStore: Send + Sync + 'static {
    /// What is kept under a name.
    ///
    /// # Errors
    ///
    /// When nobody can say.
    fn get(&self, name: &str) -> Result<Option<SecretString>, StoreError>;

    /// Keeps something, in place of what was there.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn put(&self, name: &str, value: &SecretString) -> Result<(), StoreError>;

    /// Forgets something; it need not be there.
    ///
    /// # Errors
    ///
    /// When it may still be there.
    fn remove(&self, name: &str) -> Result<(), StoreError>;
}

/// The name under which the tokens for an MCP server are kept begins so; its address follows.
const TOKENS: &str = "tokens ";

/// That name.
pub(super) fn tokens_for(server: Option<&Place>) -> String {
    format!("{TOKENS}{}", server.map(ToString::to_string).unwrap_or_default())
}

/// Credentials could not be read or kept. Its text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct StoreError {
    what: String,
    #[source]
    source: Option<io::Error>,
}

impl StoreError {
    /// An error with a text for people.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// Adds why.
    #[must_use]
    pub fn because(mut self, source: io::Error) -> Self {
        self.what = format!("{}: {source}", self.what);
        self.source = Some(source);
        self
    }
}

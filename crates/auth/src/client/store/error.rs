//! The error of credential stores.

use std::io;

/// Credentials could not be read or kept. Its text says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct CredentialStoreError {
    what: String,
    #[source]
    source: Option<io::Error>,
}

impl CredentialStoreError {
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

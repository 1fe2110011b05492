//! Error of credential stores.

use std::io;

/// Failure to read or write credentials. The message says what to do.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct CredentialStoreError {
    what: String,
    #[source]
    source: Option<io::Error>,
}

impl CredentialStoreError {
    /// Creates an error with a message.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), source: None }
    }

    /// Adds the source of the error.
    #[must_use]
    pub fn because(mut self, source: io::Error) -> Self {
        self.what = format!("{}: {source}", self.what);
        self.source = Some(source);
        self
    }
}

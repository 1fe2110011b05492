//! The credential store trait, and the names of its entries.

use outlive_transport::client::SecretString;

use super::error::CredentialStoreError;
use crate::client::url::Place;

/// Store of secrets by name.
///
/// The client uses one entry per authorization server that it has registered with, and one per MCP
/// server that it has tokens for. Methods may block: the client calls them on a blocking thread.
pub trait CredentialStore: Send + Sync + 'static {
    /// Returns the secret under a name.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be read.
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError>;

    /// Stores a secret. Replaces an existing one.
    ///
    /// # Errors
    ///
    /// Returns an error if the store cannot be written.
    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError>;

    /// Removes a secret. Does nothing if it is absent.
    ///
    /// # Errors
    ///
    /// Returns an error if the secret may still be present.
    fn remove(&self, name: &str) -> Result<(), CredentialStoreError>;

    /// Reserves the renewal of the secret under a name. Waits while another process that shares the
    /// store renews it. The default reserves nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if the other renewal takes too long, or if the store cannot be used.
    fn begin_renewal(&self, name: &str) -> Result<(), CredentialStoreError> {
        let _ = name;
        Ok(())
    }

    /// Ends a renewal that [`begin_renewal`](Self::begin_renewal) has reserved. A process that was
    /// killed does not call this, so a reservation must expire.
    fn end_renewal(&self, name: &str) {
        let _ = name;
    }
}

/// Prefix of the entries for tokens of an MCP server. The URL of the server follows.
pub(super) const TOKENS: &str = "tokens ";

/// Returns the name of the entry for the tokens of `server`.
pub(in crate::client) fn tokens_for(server: Option<&Place>) -> String {
    format!("{TOKENS}{}", server.map(ToString::to_string).unwrap_or_default())
}

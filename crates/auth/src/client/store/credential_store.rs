//! The trait of credential stores, and the names of their entries.

use outlive_transport::client::SecretString;

use super::error::CredentialStoreError;
use crate::client::url::Place;

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
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError>;

    /// Keeps something, in place of what was there.
    ///
    /// # Errors
    ///
    /// When it cannot be kept.
    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError>;

    /// Forgets something; it need not be there.
    ///
    /// # Errors
    ///
    /// When it may still be there.
    fn remove(&self, name: &str) -> Result<(), CredentialStoreError>;
}

/// The name under which the tokens for an MCP server are kept begins so; its address follows.
pub(super) const TOKENS: &str = "tokens ";

/// That name.
pub(in crate::client) fn tokens_for(server: Option<&Place>) -> String {
    format!("{TOKENS}{}", server.map(ToString::to_string).unwrap_or_default())
}

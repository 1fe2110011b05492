//! Credential stores, which keep credentials between requests and between processes.

mod credential_store;
mod error;
mod file;
#[cfg(feature = "keyring")]
mod keyring;
#[cfg(feature = "keyring")]
mod keyring_store;
mod memory;

pub use credential_store::CredentialStore;
pub(super) use credential_store::tokens_for;
pub use error::CredentialStoreError;
pub use file::FileCredentialStore;
#[cfg(feature = "keyring")]
pub use keyring_store::{CredentialLocation, KeyringStore};
pub use memory::MemoryCredentialStore;

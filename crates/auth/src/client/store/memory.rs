//! Credential store in memory.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use outlive_transport::client::SecretString;

use super::{CredentialStore, CredentialStoreError};

/// Credential store that lasts as long as the process.
#[derive(Debug, Default)]
pub struct MemoryCredentialStore(Mutex<HashMap<String, SecretString>>);

impl MemoryCredentialStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, SecretString>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialStore for MemoryCredentialStore {
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError> {
        Ok(self.lock().get(name).cloned())
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError> {
        self.lock().insert(name.to_owned(), value.clone());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), CredentialStoreError> {
        self.lock().remove(name);
        Ok(())
    }
}

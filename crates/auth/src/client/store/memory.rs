//! Credentials that end with the process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use outlive_transport::client::SecretString;

use super::{CredentialStore, StoreError};

/// Keeps credentials for as long as the process runs.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<String, SecretString>>);

impl MemoryStore {
    /// Has nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, SecretString>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialStore for MemoryStore {
    fn get(&self, name: &str) -> Result<Option<SecretString>, StoreError> {
        Ok(self.lock().get(name).cloned())
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), StoreError> {
        self.lock().insert(name.to_owned(), value.clone());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.lock().remove(name);
        Ok(())
    }
}

//! Credentials that end with the process.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use outlive_transport::client::Secret;

use super::{CredentialStore, StoreError};

/// Keeps credentials for as long as the process runs.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<HashMap<String, Secret>>);

impl MemoryStore {
    /// Has nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Secret>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialStore for MemoryStore {
    fn get(&self, name: &str) -> Result<Option<Secret>, StoreError> {
        Ok(self.lock().get(name).cloned())
    }

    fn put(&self, name: &str, value: &Secret) -> Result<(), StoreError> {
        self.lock().insert(name.to_owned(), value.clone());
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<(), StoreError> {
        self.lock().remove(name);
        Ok(())
    }
}

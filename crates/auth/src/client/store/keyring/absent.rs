//! Stub for Linux without the feature `secret-service`. Credentials are stored in a file.

use super::error::KeyringError;

pub(in crate::client::store) const NAME: &str = "the Secret Service";

pub(in crate::client::store) fn get(_: &str) -> Result<Option<Vec<u8>>, KeyringError> {
    Err(KeyringError::Absent)
}

pub(in crate::client::store) fn put(_: &str, _: &[u8]) -> Result<(), KeyringError> {
    Err(KeyringError::Absent)
}

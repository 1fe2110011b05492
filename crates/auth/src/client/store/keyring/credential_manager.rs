//! Keyring of Windows: the Credential Manager.

use keyring_core::{Entry, Error, api::CredentialStoreApi};
use windows_native_keyring_store::Store;

use super::error::KeyringError;

pub(in crate::client::store) const NAME: &str = "the Credential Manager";

const USER: &str = "credentials";

pub(in crate::client::store) fn get(name: &str) -> Result<Option<Vec<u8>>, KeyringError> {
    match entry(name)?.get_secret() {
        Ok(secret) => Ok(Some(secret)),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(keyring_error(&error)),
    }
}

pub(in crate::client::store) fn put(name: &str, secret: &[u8]) -> Result<(), KeyringError> {
    entry(name)?.set_secret(secret).map_err(|error| keyring_error(&error))
}

fn entry(name: &str) -> Result<Entry, KeyringError> {
    let store = Store::new().map_err(|error| keyring_error(&error))?;
    store.build(name, USER, None).map_err(|error| keyring_error(&error))
}

fn keyring_error(error: &Error) -> KeyringError {
    match error {
        // A session without access to credentials, such as that of a service.
        Error::NoStorageAccess(_) => KeyringError::Absent,
        // Only platform errors are shown: the texts of other errors may contain the secret.
        Error::PlatformFailure(error) => KeyringError::Failed(error.to_string()),
        _ => KeyringError::Failed("it rejects the credential".to_owned()),
    }
}

//! The Credential Manager of Windows.

use keyring_core::{Entry, Error, api::CredentialStoreApi};
use windows_native_keyring_store::Store;

use super::Unusable;

pub(super) const NAME: &str = "the Credential Manager";

const USER: &str = "credentials";

pub(super) fn get(name: &str) -> Result<Option<Vec<u8>>, Unusable> {
    match entry(name)?.get_secret() {
        Ok(secret) => Ok(Some(secret)),
        Err(Error::NoEntry) => Ok(None),
        Err(error) => Err(unusable(&error)),
    }
}

pub(super) fn put(name: &str, secret: &[u8]) -> Result<(), Unusable> {
    entry(name)?.set_secret(secret).map_err(|error| unusable(&error))
}

fn entry(name: &str) -> Result<Entry, Unusable> {
    let store = Store::new().map_err(|error| unusable(&error))?;
    store.build(name, USER, None).map_err(|error| unusable(&error))
}

fn unusable(error: &Error) -> Unusable {
    match error {
        // A session without a place for secrets, as services have.
        Error::NoStorageAccess(_) => Unusable::Absent,
        // The texts of some have what was to be kept.
        Error::PlatformFailure(error) => Unusable::Failed(error.to_string()),
        _ => Unusable::Failed("it does not take it".to_owned()),
    }
}

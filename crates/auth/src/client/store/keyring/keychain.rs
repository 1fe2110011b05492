//! Keyring of macOS: the keychain.

use security_framework::{
    base::Error,
    passwords::{get_generic_password, set_generic_password},
};

use super::error::KeyringError;

pub(in crate::client::store) const NAME: &str = "the keychain";

const ACCOUNT: &str = "credentials";

// Error codes of SecBase.h.
const NOT_FOUND: i32 = -25300;
const INTERACTION_NOT_ALLOWED: i32 = -25308;
const NO_SUCH_KEYCHAIN: i32 = -25294;
const NO_DEFAULT_KEYCHAIN: i32 = -25307;
const NOT_AVAILABLE: i32 = -25291;

pub(in crate::client::store) fn get(name: &str) -> Result<Option<Vec<u8>>, KeyringError> {
    match get_generic_password(name, ACCOUNT) {
        Ok(secret) => Ok(Some(secret)),
        Err(error) if error.code() == NOT_FOUND => Ok(None),
        Err(error) => Err(keyring_error(error)),
    }
}

pub(in crate::client::store) fn put(name: &str, secret: &[u8]) -> Result<(), KeyringError> {
    set_generic_password(name, ACCOUNT, secret).map_err(keyring_error)
}

fn keyring_error(error: Error) -> KeyringError {
    match error.code() {
        // The session has no user interface, for example over ssh.
        INTERACTION_NOT_ALLOWED => KeyringError::Locked,
        NO_SUCH_KEYCHAIN | NO_DEFAULT_KEYCHAIN | NOT_AVAILABLE => KeyringError::Absent,
        code => KeyringError::Failed(format!("error {code}")),
    }
}

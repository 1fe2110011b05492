//! Keyring of Linux desktops: the Secret Service (GNOME Keyring, KWallet, KeePassXC).
//!
//! The user is never prompted to unlock it: a locked collection counts as unavailable.
//! Spec: <https://specifications.freedesktop.org/secret-service/latest/>

use std::{collections::HashMap, sync::mpsc, thread, time::Duration};

use secret_service::{EncryptionType, Error, blocking::SecretService};

use super::error::KeyringError;

pub(in crate::client::store) const NAME: &str = "the Secret Service";

const LABEL: &str = "Outlive: the key that credentials are sealed with";

/// Timeout for responses of the bus and the service.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(in crate::client::store) fn get(name: &str) -> Result<Option<Vec<u8>>, KeyringError> {
    let name = name.to_owned();
    within_timeout(move || {
        let service = SecretService::connect(EncryptionType::Dh)?;
        let found = service.search_items(attributes(&name))?;
        match (found.unlocked.first(), found.locked.is_empty()) {
            (Some(item), _) => item.get_secret().map(Some),
            (None, true) => Ok(None),
            (None, false) => Err(Error::Locked),
        }
    })
}

pub(in crate::client::store) fn put(name: &str, secret: &[u8]) -> Result<(), KeyringError> {
    let (name, secret) = (name.to_owned(), secret.to_owned());
    within_timeout(move || {
        let service = SecretService::connect(EncryptionType::Dh)?;
        let collection = service.get_default_collection()?;
        collection.ensure_unlocked()?;
        let (replace, content_type) = (true, "application/octet-stream");
        collection.create_item(LABEL, attributes(&name), &secret, replace, content_type)?;
        Ok(())
    })
}

/// Returns the attributes that identify the item.
fn attributes(name: &str) -> HashMap<&str, &str> {
    HashMap::from([("xdg:schema", "dev.outlive.Credentials"), ("service", name)])
}

/// Runs `work` on a separate thread. The bus client blocks, which is not allowed on a runtime
/// thread, and a service that does not respond must not block the caller.
fn within_timeout<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, KeyringError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    thread::spawn(move || sender.send(work()));
    match receiver.recv_timeout(TIMEOUT) {
        Ok(done) => done.map_err(|error| keyring_error(&error)),
        Err(_) => Err(KeyringError::Failed("it does not respond".to_owned())),
    }
}

fn keyring_error(error: &Error) -> KeyringError {
    /// Names of D-Bus errors that mean that no program provides the service.
    const ABSENT: [&str; 3] = ["Error.Spawn.", "Error.ServiceUnknown", "Error.NameHasNoOwner"];
    match error {
        Error::Unavailable | Error::NoResult => KeyringError::Absent,
        Error::Locked | Error::Prompt => KeyringError::Locked,
        error => {
            let text = error.to_string();
            match ABSENT.iter().any(|name| text.contains(name)) {
                true => KeyringError::Absent,
                false if text.contains("Secret.Error.IsLocked") => KeyringError::Locked,
                false => KeyringError::Failed(text),
            }
        }
    }
}

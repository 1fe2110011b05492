//! Credential store that seals credentials with a key from the system's keyring.
//!
//! Keyrings accept only small secrets (2,560 bytes on Windows), and tokens are often longer. The
//! keyring therefore stores only the key, and the sealed credentials are in a file. If the keyring
//! is missing or locked, credentials are stored in a plain file that only its owner can read. An
//! entry is in one of the two files; the plain file is read first.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use outlive_transport::client::SecretString;
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    rand::{SecureRandom, SystemRandom},
};

use super::{
    credential_store::{CredentialStore, tokens_for},
    error::CredentialStoreError,
    file::FileCredentialStore,
    keyring::{self, KeyringError},
};
use crate::{
    client::url::Place,
    jose::{decode_base64url, encode_base64url},
};

const KEY_BYTES: usize = 32;

/// Credential store that seals credentials with a key from the system's keyring. Without a keyring,
/// it uses a plain file with the permissions 0600.
///
/// The keyring is the keychain on macOS, the Credential Manager on Windows, and the Secret Service
/// on Linux desktops. The store never prompts the user to unlock it. Clones share the store.
#[derive(Clone, Debug)]
pub struct KeyringStore {
    plain: FileCredentialStore,
    sealed: FileCredentialStore,
    /// Name of the key in the keyring. `None` if the keyring is disabled.
    service: Option<String>,
    // A std mutex: no code awaits while it is held, and the key is read once.
    found: Arc<Mutex<Found>>,
}

/// Result of the last access to the keyring.
#[derive(Debug, Default)]
struct Found {
    key: Option<Key>,
    /// Reason why an entry was stored in the plain file although the system has a keyring.
    why_plain: Option<String>,
}

/// Result of reading an entry.
enum Looked {
    There(SecretString),
    Closed(KeyringError),
    Nothing,
}

#[derive(Clone)]
struct Key(LessSafeKey);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// Location of stored credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialLocation {
    /// A file that is sealed with a key from the keyring.
    #[non_exhaustive]
    System {
        /// Name of the keyring, such as "the keychain".
        name: &'static str,
        /// Path of the sealed file.
        file: PathBuf,
    },
    /// A plain file that only its owner can read.
    #[non_exhaustive]
    File {
        /// Path of the file.
        file: PathBuf,
        /// Reason why the credentials are not sealed, although the system has a keyring. Known only
        /// to the store that wrote them.
        why: Option<String>,
    },
}

impl KeyringStore {
    /// Creates a store for a program with the name `service`, such as `my-app`. `file` is the plain
    /// file; the sealed file is next to it.
    pub fn new(service: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        let file = file.into();
        let sealed = FileCredentialStore::new(file.with_extension("sealed"));
        Self {
            plain: FileCredentialStore::new(file),
            sealed,
            service: Some(service.into()),
            found: Arc::default(),
        }
    }

    /// Disables the keyring: all entries go to the plain file, and sealed entries cannot be read.
    #[must_use]
    pub fn without_system(mut self) -> Self {
        self.service = None;
        self
    }

    /// Returns the location of the tokens for an MCP server, or `None` if the store has none.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    pub fn location(
        &self,
        server: &str,
    ) -> Result<Option<CredentialLocation>, CredentialStoreError> {
        let name = tokens_for(Place::parse(server).as_ref());
        let file = |store: &FileCredentialStore| store.path().to_owned();
        if self.plain.get(&name)?.is_some() {
            let why = self.found().why_plain.clone();
            return Ok(Some(CredentialLocation::File { file: file(&self.plain), why }));
        }
        let sealed = self.sealed.get(&name)?;
        Ok(sealed
            .map(|_| CredentialLocation::System { name: keyring::NAME, file: file(&self.sealed) }))
    }

    /// Returns the reason why the tokens for an MCP server cannot be opened. Returns `None` if they
    /// can, or if the store has none.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    pub fn unreadable(&self, server: &str) -> Result<Option<String>, CredentialStoreError> {
        match self.look(&tokens_for(Place::parse(server).as_ref()))? {
            Looked::Closed(error) => Ok(Some(message(&error))),
            Looked::There(_) | Looked::Nothing => Ok(None),
        }
    }

    /// Returns the URLs of the MCP servers that the store has tokens for. Does not need the key.
    ///
    /// # Errors
    ///
    /// Returns an error if a file cannot be read.
    pub fn servers(&self) -> Result<Vec<String>, CredentialStoreError> {
        let mut servers = self.sealed.servers()?;
        servers.extend(self.plain.servers()?);
        servers.sort_unstable();
        servers.dedup();
        Ok(servers)
    }

    /// Returns the key. The inner error is the reason why it is unavailable; credentials are then
    /// stored in the plain file.
    fn key(&self) -> Result<Result<Key, KeyringError>, CredentialStoreError> {
        let Some(service) = &self.service else { return Ok(Err(KeyringError::Absent)) };
        let mut found = self.found();
        if let Some(key) = &found.key {
            return Ok(Ok(key.clone()));
        }
        // Locked, because two processes that create a key at once would overwrite each other's key.
        let _lock = self.sealed.lock()?;
        let key = get_or_make(service);
        found.key = key.as_ref().ok().cloned();
        Ok(key)
    }

    fn look(&self, name: &str) -> Result<Looked, CredentialStoreError> {
        if let Some(plain) = self.plain.get(name)? {
            return Ok(Looked::There(plain));
        }
        let Some(sealed) = self.sealed.get(name)? else { return Ok(Looked::Nothing) };
        Ok(match self.key()? {
            Err(error) => Looked::Closed(error),
            Ok(key) => match key.open(name, sealed.expose()) {
                Some(secret) => Looked::There(secret),
                None => Looked::Closed(KeyringError::Failed("its key has changed".to_owned())),
            },
        })
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CredentialStore for KeyringStore {
    fn get(&self, name: &str) -> Result<Option<SecretString>, CredentialStoreError> {
        match self.look(name)? {
            Looked::There(secret) => Ok(Some(secret)),
            // The user can log in again. The sealed entry stays until it can be opened.
            Looked::Closed(_) | Looked::Nothing => Ok(None),
        }
    }

    fn put(&self, name: &str, value: &SecretString) -> Result<(), CredentialStoreError> {
        match self.key()? {
            Ok(key) => {
                let sealed = key.seal(name, value)?;
                self.sealed.put(name, &sealed)?;
                self.plain.remove(name)
            }
            Err(error) => {
                self.found().why_plain = (error != KeyringError::Absent).then(|| message(&error));
                self.plain.put(name, value)?;
                self.sealed.remove(name)
            }
        }
    }

    fn remove(&self, name: &str) -> Result<(), CredentialStoreError> {
        self.sealed.remove(name)?;
        self.plain.remove(name)
    }
}

impl Key {
    fn of(bytes: &[u8]) -> Option<Self> {
        Some(Self(LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, bytes).ok()?)))
    }

    /// Seals a value and binds it to its name. Nonces are random, which is safe for the few
    /// thousand writes of a program.
    fn seal(&self, name: &str, value: &SecretString) -> Result<SecretString, CredentialStoreError> {
        let failed = |_| CredentialStoreError::new("credentials cannot be sealed on this machine");
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let mut text = value.expose().as_bytes().to_vec();
        let aad = Aad::from(name.as_bytes());
        let unique = Nonce::assume_unique_for_key(nonce);
        self.0.seal_in_place_append_tag(unique, aad, &mut text).map_err(failed)?;
        Ok(SecretString::new(encode_base64url([&nonce[..], &text].concat())))
    }

    fn open(&self, name: &str, sealed: &str) -> Option<SecretString> {
        let mut sealed = decode_base64url(sealed)?;
        let (nonce, text) = sealed.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = self.0.open_in_place(nonce, Aad::from(name.as_bytes()), text).ok()?;
        Some(SecretString::new(str::from_utf8(opened).ok()?))
    }
}

fn get_or_make(service: &str) -> Result<Key, KeyringError> {
    if let Some(key) = keyring::get(service)?.and_then(|key| Key::of(&key)) {
        return Ok(key);
    }
    let mut bytes = [0; KEY_BYTES];
    let made = SystemRandom::new().fill(&mut bytes).ok().and_then(|()| Key::of(&bytes));
    let made =
        made.ok_or_else(|| KeyringError::Failed("the system has no random bytes".to_owned()))?;
    keyring::put(service, &bytes)?;
    Ok(made)
}

fn message(error: &KeyringError) -> String {
    let name = keyring::NAME;
    match error {
        KeyringError::Absent => format!("{name} is not available, or is disabled"),
        KeyringError::Locked => format!("{name} is locked"),
        KeyringError::Failed(why) => format!("{name} failed: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use outlive_transport::client::SecretString;

    use super::Key;

    #[test]
    fn sealed_value_opens_only_with_its_key_and_name() {
        let (key, other) = (Key::of(&[1; 32]).unwrap(), Key::of(&[2; 32]).unwrap());
        let secret = SecretString::new("secret-token-ä");
        let sealed = key.seal("tokens a", &secret).unwrap();
        assert!(!sealed.expose().contains("secret"));
        assert_eq!(key.open("tokens a", sealed.expose()), Some(secret.clone()));
        assert_eq!(key.open("tokens b", sealed.expose()), None);
        assert_eq!(other.open("tokens a", sealed.expose()), None);
        assert_ne!(key.seal("tokens a", &secret).unwrap(), sealed, "each seal uses another nonce");
        for bad in ["", "AAAA", &sealed.expose()[1..], "not base64!"] {
            assert_eq!(key.open("tokens a", bad), None, "{bad}");
        }
        assert!(Key::of(&[1; 31]).is_none());
        assert_eq!(format!("{key:?}"), "Key(…)");
    }
}

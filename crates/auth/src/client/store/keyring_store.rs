//! Credentials that only the operating system can open: each is sealed with a key that is kept in
//! the system's own place for secrets.
//!
//! The key is there and the sealed credentials are in a file, because such places take small secrets
//! only: 2,560 bytes on Windows, and tokens are often longer. Where there is no such place, or it is
//! locked, credentials are kept in a plain file that only its owner may read. What is kept in one of
//! the two is taken out of the other; the plain one is looked at first.

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

/// Keeps credentials sealed with a key that the operating system keeps, and in a file with the
/// permissions 0600 where it keeps none.
///
/// The system's place is the keychain on macOS, the Credential Manager on Windows, and the Secret
/// Service on Linux desktops. Nobody is asked to unlock it.
///
/// A clone is the same store.
#[derive(Clone, Debug)]
pub struct KeyringStore {
    plain: FileCredentialStore,
    sealed: FileCredentialStore,
    /// What the key is called in the system's place; `None` if that is not to be used.
    service: Option<String>,
    // A std mutex: nobody awaits here, and the key is looked for once.
    found: Arc<Mutex<Found>>,
}

/// What was found out about the system's place, the last time that it was needed.
#[derive(Debug, Default)]
struct Found {
    key: Option<Key>,
    /// Why something was kept in the plain file, though there is such a place.
    why_plain: Option<String>,
}

/// What is there under a name.
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

/// Where credentials are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CredentialLocation {
    /// In a file that only the operating system can open.
    #[non_exhaustive]
    System {
        /// What its place for secrets is called, as in "the keychain".
        name: &'static str,
        /// The sealed file.
        file: PathBuf,
    },
    /// In a plain file that only its owner may read.
    #[non_exhaustive]
    File {
        /// The file.
        file: PathBuf,
        /// Why it could not be sealed, for people, if the system has a place for secrets. Known to the
        /// store that kept it there.
        why: Option<String>,
    },
}

impl KeyringStore {
    /// Credentials of a program of this name, as in `my-app`; in this file where the system has no
    /// place for secrets, and beside it where it has one.
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

    /// Keeps everything in the plain file, whatever the system has; what is sealed stays closed.
    #[must_use]
    pub fn without_system(mut self) -> Self {
        self.service = None;
        self
    }

    /// Where the tokens for an MCP server are kept; `None` if there are none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
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

    /// Why the tokens for an MCP server, which are there, cannot be opened, for people; `None` if they
    /// can, or there are none.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn unreadable(&self, server: &str) -> Result<Option<String>, CredentialStoreError> {
        match self.look(&tokens_for(Place::parse(server).as_ref()))? {
            Looked::Closed(error) => Ok(Some(message(&error))),
            Looked::There(_) | Looked::Nothing => Ok(None),
        }
    }

    /// The addresses of the MCP servers that it has tokens for. Nothing has to be opened for that.
    ///
    /// # Errors
    ///
    /// When a file cannot be read.
    pub fn servers(&self) -> Result<Vec<String>, CredentialStoreError> {
        let mut servers = self.sealed.servers()?;
        servers.extend(self.plain.servers()?);
        servers.sort_unstable();
        servers.dedup();
        Ok(servers)
    }

    /// The key. The inner error is why it cannot be had, and credentials are kept without it.
    fn key(&self) -> Result<Result<Key, KeyringError>, CredentialStoreError> {
        let Some(service) = &self.service else { return Ok(Err(KeyringError::Absent)) };
        let mut found = self.found();
        if let Some(key) = &found.key {
            return Ok(Ok(key.clone()));
        }
        // Two that make a key at once would each seal with one, and one of the two would be lost.
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
                None => Looked::Closed(KeyringError::Failed("its key is another one".to_owned())),
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
            // Whoever logs in again gets on, and what is sealed is there when it can be opened.
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

    /// Seals a value to its name. Nonces are random: a program writes a few thousand times at most.
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
    let made = made.ok_or_else(|| KeyringError::Failed("there is no randomness".to_owned()))?;
    keyring::put(service, &bytes)?;
    Ok(made)
}

fn message(error: &KeyringError) -> String {
    let name = keyring::NAME;
    match error {
        KeyringError::Absent => format!("{name} is not here, or is not to be used"),
        KeyringError::Locked => format!("{name} is locked"),
        KeyringError::Failed(why) => format!("{name} does not work: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use outlive_transport::client::SecretString;

    use super::Key;

    #[test]
    fn what_is_sealed_opens_with_its_key_and_under_its_name() {
        let (key, other) = (Key::of(&[1; 32]).unwrap(), Key::of(&[2; 32]).unwrap());
        let secret = SecretString::new("secret-token-ä");
        let sealed = key.seal("tokens a", &secret).unwrap();
        assert!(!sealed.expose().contains("secret"));
        assert_eq!(key.open("tokens a", sealed.expose()), Some(secret.clone()));
        assert_eq!(key.open("tokens b", sealed.expose()), None);
        assert_eq!(other.open("tokens a", sealed.expose()), None);
        assert_ne!(key.seal("tokens a", &secret).unwrap(), sealed, "no nonce is used twice");
        for bad in ["", "AAAA", &sealed.expose()[1..], "not base64!"] {
            assert_eq!(key.open("tokens a", bad), None, "{bad}");
        }
        assert!(Key::of(&[1; 31]).is_none());
        assert_eq!(format!("{key:?}"), "Key(…)");
    }
}

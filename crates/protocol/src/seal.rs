//! Sealed tokens: text that clients carry for us and can neither read, change nor lend.
//!
//! An AEAD with a random nonce. What the token is for and whom it belongs to is associated data:
//! a token of another caller, method or server does not open, and every failure is the same one.
//!
//! A token is the unpadded base64url of `version (1) | key id (4) | nonce (24) | ciphertext | tag
//! (16)`. The key id tells which key of the ring to try, so that keys can be replaced while tokens
//! are out.

use std::{fmt, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    XChaCha20Poly1305, XNonce,
    aead::{Aead, AeadInOut, KeyInit, Payload},
};
use sha2::{Digest, Sha256};

#[cfg(test)]
mod tests;

const KEY: usize = 32;
const KEY_ID: usize = 4;
const NONCE: usize = 24;
const TAG: usize = 16;

/// What the bytes of a token mean; another layout gets another number.
const VERSION: u8 = 1;

/// Version and key id: what can be read without a key, and is bound like the rest.
const HEAD: usize = 1 + KEY_ID;

/// Seals tokens with one key and opens those of a whole ring of keys. Cheap to clone.
#[derive(Clone)]
pub struct Seal(Arc<Ring>);

/// What was sealed.
pub type Opened = Vec<u8>;

#[derive(Clone)]
struct Ring {
    current: RingKey,
    previous: Vec<RingKey>,
}

#[derive(Clone)]
struct RingKey {
    id: [u8; KEY_ID],
    cipher: XChaCha20Poly1305,
}

impl Seal {
    /// Seals with a key that other replicas share.
    pub fn new(key: [u8; KEY]) -> Self {
        Self(Arc::new(Ring { current: RingKey::new(key), previous: Vec::new() }))
    }

    /// Seals with a key that lives as long as this process.
    ///
    /// # Errors
    ///
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        Self::random_key().map(Self::new)
    }

    /// A key that nobody else has.
    ///
    /// # Errors
    ///
    /// When the operating system gives no random bytes.
    pub fn random_key() -> Result<[u8; KEY], getrandom::Error> {
        let mut key = [0; KEY];
        getrandom::fill(&mut key)?;
        Ok(key)
    }

    /// Opens what was sealed with this key as well. Nothing is sealed with it any more.
    #[must_use]
    pub fn with_previous(mut self, key: [u8; KEY]) -> Self {
        Arc::make_mut(&mut self.0).previous.push(RingKey::new(key));
        self
    }

    /// Seals `content`. Only the same `context` opens it again. `None` when the operating system
    /// gives no random bytes.
    pub fn seal(&self, content: &[u8], context: &[&str]) -> Option<String> {
        let key = &self.0.current;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let mut token = Vec::with_capacity(HEAD + NONCE + content.len() + TAG);
        token.push(VERSION);
        token.extend_from_slice(&key.id);
        let bound = bind(&token, context);
        token.extend_from_slice(&nonce);
        token.extend_from_slice(content);
        let (_, content) = token.split_at_mut(HEAD + NONCE);
        let tag =
            key.cipher.encrypt_inout_detached(&XNonce::from(nonce), &bound, content.into()).ok()?;
        token.extend_from_slice(&tag);
        Some(URL_SAFE_NO_PAD.encode(token))
    }

    /// Opens a token; `None` for any token that was not sealed here, for this, with this content.
    pub fn open(&self, token: &str, context: &[&str]) -> Option<Opened> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE>()?;
        let [VERSION, id @ ..] = head else { return None };
        let (nonce, bound) = (XNonce::from(*nonce), bind(head, context));
        // An id is short, so that two keys may have the same one.
        self.0
            .with_id(*id)
            .find_map(|key| key.cipher.decrypt(&nonce, Payload { msg: sealed, aad: &bound }).ok())
    }
}

impl Ring {
    fn with_id(&self, id: [u8; KEY_ID]) -> impl Iterator<Item = &RingKey> {
        std::iter::once(&self.current).chain(&self.previous).filter(move |key| key.id == id)
    }
}

impl RingKey {
    fn new(key: [u8; KEY]) -> Self {
        Self { id: key_id(&key), cipher: XChaCha20Poly1305::new(&key.into()) }
    }
}

/// Names a key without giving anything of it away.
fn key_id(key: &[u8; KEY]) -> [u8; KEY_ID] {
    let digest: [u8; 32] =
        Sha256::new().chain_update(b"outlive key id").chain_update(key).finalize().into();
    let [a, b, c, d, ..] = digest;
    [a, b, c, d]
}

/// Joins head and parts so that no two lists of parts give the same bytes.
fn bind(head: &[u8], context: &[&str]) -> Vec<u8> {
    let parts: usize = context.iter().map(|part| size_of::<u64>() + part.len()).sum();
    let mut bound = Vec::with_capacity(head.len() + parts);
    bound.extend_from_slice(head);
    for part in context {
        bound.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bound.extend_from_slice(part.as_bytes());
    }
    bound
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

//! Sealed tokens: data that clients carry for the server and cannot read, change or share.
//!
//! An AEAD with a random nonce. The purpose and the principal of a token are associated data, so a
//! token of another principal, method or server does not open. All failures look the same.
//!
//! A token is the unpadded base64url of `version (1) | key ID (4) | nonce (24) | ciphertext | tag
//! (16)`. The key ID selects the key, so that keys can be rotated while tokens are in use.

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

/// Version of the token layout.
const VERSION: u8 = 1;

/// Length of version and key ID, which are readable without a key and authenticated too.
const HEAD: usize = 1 + KEY_ID;

/// Seals tokens with the current key, and opens tokens of the current and previous keys. Cheap to
/// clone.
#[derive(Clone)]
pub struct Seal(Arc<Ring>);

/// The content of a token.
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

/// Purposes of tokens. The purpose is the first part of a token's context, so that no token opens
/// for another purpose. This list has all purposes of the keys of a server.
impl Seal {
    /// Answer link of one input request.
    pub const ANSWER_LINK: &'static str = "answer-link";
    /// Completion token of an external event.
    pub const COMPLETION_TOKEN: &'static str = "external";
    /// Pagination cursor of a list.
    pub const CURSOR: &'static str = "cursor";
    /// Event ID of a legacy stream.
    pub const EVENT_ID: &'static str = "event";
    /// Form token of a page of the console.
    pub const FORM_TOKEN: &'static str = "form-token";
    /// Request state of a multi round-trip request.
    pub const REQUEST_STATE: &'static str = "state";
    /// Session of the console: its credential.
    pub const SESSION: &'static str = "session";
    /// Sign-in to the console: one-time links and started logins.
    pub const SIGN_IN: &'static str = "sign-in";
    /// Tokens and logins of a gateway at its upstreams.
    pub const UPSTREAM_LOGIN: &'static str = "upstream-login";
}

impl Seal {
    /// Creates a seal with a key that all replicas share.
    pub fn new(key: [u8; KEY]) -> Self {
        Self(Arc::new(Ring { current: RingKey::new(key), previous: Vec::new() }))
    }

    /// Creates a seal with a random key, which exists only in this process.
    ///
    /// # Errors
    ///
    /// If the operating system provides no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        Self::random_key().map(Self::new)
    }

    /// Returns a random key.
    ///
    /// # Errors
    ///
    /// If the operating system provides no random bytes.
    pub fn random_key() -> Result<[u8; KEY], getrandom::Error> {
        let mut key = [0; KEY];
        getrandom::fill(&mut key)?;
        Ok(key)
    }

    /// Adds a key for opening tokens. New tokens never use it.
    #[must_use]
    pub fn with_previous(mut self, key: [u8; KEY]) -> Self {
        Arc::make_mut(&mut self.0).previous.push(RingKey::new(key));
        self
    }

    /// Seals `content`. Only the same `context` opens the token. Returns `None` if the operating
    /// system provides no random bytes.
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

    /// Opens a token. Returns `None` if the token was changed, or sealed with another key or
    /// context.
    pub fn open(&self, token: &str, context: &[&str]) -> Option<Opened> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE>()?;
        let [VERSION, id @ ..] = head else { return None };
        let (nonce, bound) = (XNonce::from(*nonce), bind(head, context));
        // Key IDs are short, so two keys may share one.
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

/// Derives the ID of a key. Reveals nothing about the key.
fn key_id(key: &[u8; KEY]) -> [u8; KEY_ID] {
    let digest: [u8; 32] =
        Sha256::new().chain_update(b"outlive key id").chain_update(key).finalize().into();
    let [a, b, c, d, ..] = digest;
    [a, b, c, d]
}

/// Joins head and parts. Length prefixes make the result unique for each list of parts.
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

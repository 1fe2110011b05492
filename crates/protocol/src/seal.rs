//! Sealed tokens: text that clients carry for us and can neither read, change nor lend.
//!
//! An AEAD with a random nonce. What the token is for and whom it belongs to is associated data:
//! a token of another caller, method or server does not open, and every failure is the same one.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chacha20poly1305::{
    Key, XChaCha20Poly1305, XNonce,
    aead::{Aead, KeyInit, Payload},
};

const KEY: usize = 32;
const NONCE: usize = 24;

/// Seals and opens tokens with one key.
#[derive(Clone)]
pub struct Seal(XChaCha20Poly1305);

/// What was sealed.
pub type Opened = Vec<u8>;

impl Seal {
    /// Seals with a key that other replicas share.
    pub fn new(key: [u8; KEY]) -> Self {
        Self(XChaCha20Poly1305::new(&Key::from(key)))
    }

    /// Seals with a key that lives as long as this process.
    ///
    /// # Errors
    ///
    /// When the operating system gives no random bytes.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut key = [0; KEY];
        getrandom::fill(&mut key)?;
        Ok(Self::new(key))
    }

    /// Seals `content`. Only the same `context` opens it again.
    pub fn seal(&self, content: &[u8], context: &[&str]) -> Option<String> {
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let aad = bind(context);
        let sealed =
            self.0.encrypt(&XNonce::from(nonce), Payload { msg: content, aad: &aad }).ok()?;
        let mut token = nonce.to_vec();
        token.extend_from_slice(&sealed);
        Some(URL_SAFE_NO_PAD.encode(token))
    }

    /// Opens a token; `None` for any token that was not sealed here, for this, with this content.
    pub fn open(&self, token: &str, context: &[&str]) -> Option<Opened> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk::<NONCE>()?;
        let aad = bind(context);
        self.0.decrypt(&XNonce::from(*nonce), Payload { msg: sealed, aad: &aad }).ok()
    }
}

/// Joins the parts so that no two lists of parts give the same bytes.
fn bind(context: &[&str]) -> Vec<u8> {
    let mut aad = Vec::new();
    for part in context {
        aad.extend_from_slice(&(part.len() as u64).to_le_bytes());
        aad.extend_from_slice(part.as_bytes());
    }
    aad
}

impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seal(…)")
    }
}

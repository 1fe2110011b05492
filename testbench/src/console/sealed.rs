//! Form tokens and cursors that expire at another time, sealed with the key of the server.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlive::server::Principal;
use outlive_protocol::Seal;
use sha2::{Digest as _, Sha256};

use super::site::Site;

/// Bytes at the start of a sealed value with the time at which it expires.
const EXPIRY: usize = size_of::<u64>();

/// Opens and seals values like the server.
pub(super) struct Sealed(Seal);

impl Sealed {
    pub(super) fn new(site: &Site) -> Self {
        Self(Seal::new(site.seal_key))
    }

    /// Returns a form token of a session and a path with another expiry, in milliseconds since 1970.
    pub(super) fn form_token(
        &self,
        token: &str,
        session: &str,
        path: &str,
        expires_at: u64,
    ) -> Result<String> {
        let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(session));
        self.expiring(token, &[Seal::FORM_TOKEN, "console", &digest, path], expires_at)
    }

    /// Returns a cursor of a person and a list with another expiry, in milliseconds since 1970.
    pub(super) fn cursor(
        &self,
        cursor: &str,
        person: &str,
        list: &str,
        expires_at: u64,
    ) -> Result<String> {
        let principal = Principal::named(person);
        self.expiring(cursor, &[Seal::CURSOR, "people", principal.key(), list], expires_at)
    }

    fn expiring(&self, sealed: &str, context: &[&str], expires_at: u64) -> Result<String> {
        let mut content = self.0.open(sealed, context).context("the value has another context")?;
        let expiry = content.get_mut(..EXPIRY).context("the value has no expiry")?;
        expiry.copy_from_slice(&expires_at.to_le_bytes());
        self.0.seal(&content, context).context("no random bytes")
    }
}

/// Returns the time in milliseconds since 1970.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

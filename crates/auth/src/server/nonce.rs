//! Nonces for DPoP proofs (RFC 9449 section 9). A nonce shows that a proof is recent.
//!
//! The server stores no nonces. A nonce is the number of a time span with an HMAC, and is valid for
//! its span and the next.

use std::time::Duration;

use ring::{hmac, rand::SystemRandom};

use crate::jose::{decode_base64url, encode_base64url};

/// Issues and verifies nonces.
pub(super) struct Nonces {
    key: hmac::Key,
    span: i64,
}

impl Nonces {
    /// Creates an issuer of nonces. Replicas share `secret`; without it, the key is random.
    pub(super) fn new(secret: Option<&[u8]>, span: Duration) -> Option<Self> {
        let key = match secret {
            Some(secret) => hmac::Key::new(hmac::HMAC_SHA256, secret),
            None => hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?,
        };
        Some(Self { key, span: i64::try_from(span.as_secs()).unwrap_or(i64::MAX).max(1) })
    }

    pub(super) fn now(&self, now: i64) -> String {
        self.numbered(now.div_euclid(self.span))
    }

    pub(super) fn is_good(&self, nonce: &str, now: i64) -> bool {
        let Some(bytes) = decode_base64url(nonce) else { return false };
        let Some((number, code)) = bytes.split_first_chunk::<8>() else { return false };
        let span = now.div_euclid(self.span);
        let issued = i64::from_be_bytes(*number);
        (issued == span || issued == span - 1) && hmac::verify(&self.key, number, code).is_ok()
    }

    fn numbered(&self, span: i64) -> String {
        let number = span.to_be_bytes();
        encode_base64url([&number, hmac::sign(&self.key, &number).as_ref()].concat())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Nonces;

    #[test]
    fn nonce_is_valid_for_two_spans_and_one_key() {
        let nonces = Nonces::new(Some(b"secret"), Duration::from_secs(60)).unwrap();
        let nonce = nonces.now(119);
        assert!(nonces.is_good(&nonce, 60) && nonces.is_good(&nonce, 179));
        assert!(!nonces.is_good(&nonce, 180) && !nonces.is_good(&nonce, 59));
        assert!(!nonces.is_good("", 60) && !nonces.is_good("AAAA", 60));
        let replica = Nonces::new(Some(b"secret"), Duration::from_secs(60)).unwrap();
        assert!(replica.is_good(&nonce, 60));
        let other = Nonces::new(None, Duration::from_secs(60)).unwrap();
        assert!(!other.is_good(&nonce, 60));
    }
}

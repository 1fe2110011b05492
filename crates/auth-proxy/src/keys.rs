//! Keys of the proxy, derived from one secret: one seals data, the other signs tokens.

use outlive_protocol::Seal;
use ring::hmac;
use serde::{Serialize, de::DeserializeOwned};

use super::error::AuthProxyBuildError;
use outlive_auth::jose::{Algorithm, JwkSet, SigningKey, encode_base64url};

/// Minimum bytes of a secret.
const LEAST: usize = 32;

/// Seal and signing keys.
#[derive(Debug)]
pub(super) struct Keys {
    seal: Seal,
    signing: SigningKey,
    /// Public keys, including those of previous secrets, whose tokens may still be in use.
    pub(super) published: JwkSet,
}

impl Keys {
    /// Derives the keys of a secret. Data of the previous secrets stays valid.
    pub(super) fn new(secret: &[u8], previous: &[Vec<u8>]) -> Result<Self, AuthProxyBuildError> {
        if [secret].into_iter().chain(previous.iter().map(Vec::as_slice)).any(|it| it.len() < LEAST)
        {
            return Err(AuthProxyBuildError::ShortSecret);
        }
        let signing = signing_key(secret)?;
        let mut published = vec![signing.public()];
        let mut seal = Seal::new(derived(secret, "outlive proxy: seal"));
        for one in previous {
            published.push(signing_key(one)?.public());
            seal = seal.with_previous(derived(one, "outlive proxy: seal"));
        }
        Ok(Self { seal, signing, published: JwkSet::new(published) })
    }

    /// Returns a random secret.
    pub(super) fn random_secret() -> Result<Vec<u8>, AuthProxyBuildError> {
        Seal::random_key().map(Vec::from).map_err(|_| AuthProxyBuildError::NoRandomness)
    }

    /// Seals a value, which opens only in the same context.
    pub(super) fn seal(&self, value: &impl Serialize, context: &[&str]) -> Option<String> {
        self.seal.seal(&serde_json::to_vec(value).ok()?, context)
    }

    /// Opens a sealed value in the same context.
    pub(super) fn open<T: DeserializeOwned>(&self, text: &str, context: &[&str]) -> Option<T> {
        serde_json::from_slice(&self.seal.open(text, context)?).ok()
    }

    /// Signs an access token with these claims.
    pub(super) fn sign(&self, claims: &impl Serialize) -> Option<String> {
        self.signing.sign("at+jwt", claims).ok()
    }
}

/// Returns an unguessable random text.
pub(super) fn random() -> Option<String> {
    Seal::random_key().ok().map(encode_base64url)
}

/// Returns the hash of a text.
pub(super) fn digest(text: &str) -> String {
    encode_base64url(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()))
}

fn derived(secret: &[u8], purpose: &str) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), purpose.as_bytes());
    tag.as_ref().try_into().expect("an HMAC-SHA-256 tag has a fixed length")
}

/// Derives an Ed25519 key, whose private key may be any 32 bytes.
fn signing_key(secret: &[u8]) -> Result<SigningKey, AuthProxyBuildError> {
    /// PKCS#8 header of an Ed25519 private key (RFC 8410 section 7).
    const HEAD: [u8; 16] = [
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    let seed = derived(secret, "outlive proxy: sign");
    let key = SigningKey::from_pkcs8(Algorithm::EdDsa, &[&HEAD[..], &seed].concat());
    let key = key.map_err(|_| AuthProxyBuildError::NoRandomness)?;
    let id = key.public().thumbprint();
    Ok(key.with_id(id))
}

#[cfg(test)]
mod tests {
    use super::Keys;
    use outlive_auth::jose::{Algorithms, Jws};

    #[test]
    fn keys_of_the_same_or_a_previous_secret_open_sealed_values() {
        let old = Keys::new(&[1; 32], &[]).unwrap();
        let new = Keys::new(&[2; 32], &[vec![1; 32]]).unwrap();
        let other = Keys::new(&[3; 32], &[]).unwrap();
        let (sealed, token) = (old.seal(&"it", &["a"]).unwrap(), old.sign(&["it"]).unwrap());
        let token = Jws::parse(&token).unwrap();
        for (keys, good) in
            [(&Keys::new(&[1; 32], &[]).unwrap(), true), (&new, true), (&other, false)]
        {
            assert_eq!(keys.open::<String>(&sealed, &["a"]).is_some(), good);
            assert_eq!(keys.open::<String>(&sealed, &["b"]), None);
            assert_eq!(token.verify_with(&keys.published, Algorithms::ALL).is_ok(), good);
        }
        assert!(Keys::new(&[1; 31], &[]).is_err());
    }
}

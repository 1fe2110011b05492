//! Random strings for `state`, verifiers and proofs.

use crate::jose::{KeyError, encode_base64url};

/// Returns `bytes` random bytes as base64url.
pub(super) fn random(bytes: usize) -> Result<String, KeyError> {
    let mut random = vec![0; bytes];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut random)
        .map_err(|_| KeyError::Failed)?;
    Ok(encode_base64url(random))
}

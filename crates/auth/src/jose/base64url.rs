//! Base64url without padding, as tokens use it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Encodes bytes as base64url without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes base64url without padding. Rejects noncanonical encodings, so that each value has one
/// form.
pub fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

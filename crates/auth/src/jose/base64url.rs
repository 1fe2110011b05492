//! The alphabet of tokens: base64url without padding, and nothing else is accepted for it.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// Writes bytes as base64url, without padding.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Reads base64url without padding. What could also be written otherwise is refused, so that one
/// value has one form.
pub fn decode(text: impl AsRef<[u8]>) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

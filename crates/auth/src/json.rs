//! Parser for JSON objects.

use serde::Deserialize;

/// Parses a JSON object. Rejects arrays, which serde would accept for a struct.
pub fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    json.trim_ascii_start().starts_with(b"{").then(|| serde_json::from_slice(json).ok())?
}

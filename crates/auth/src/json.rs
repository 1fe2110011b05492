//! Reading JSON objects, and only those.

use serde::Deserialize;

/// Reads a JSON object. Serde alone would also read a list as a struct, by the order of its fields.
pub fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    json.trim_ascii_start().starts_with(b"{").then(|| serde_json::from_slice(json).ok())?
}

//! Reading JSON objects, and only those.

use serde::Deserialize;

/// Reads an object. Serde would take a list for a struct as well, by the order of its fields.
pub(crate) fn object<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Option<T> {
    json.trim_ascii_start().starts_with(b"{").then(|| serde_json::from_slice(json).ok())?
}

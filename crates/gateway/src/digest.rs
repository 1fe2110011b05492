//! Hashes as text, for keys of the store.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Returns bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the hash of texts, which differs for each list of texts.
pub(crate) fn digest_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::digest_of;

    #[test]
    fn digest_depends_on_the_limits_of_its_parts() {
        assert_eq!(digest_of(["a", "b"]), digest_of(["a", "b"]));
        assert_ne!(digest_of(["a", "b"]), digest_of(["ab"]));
        assert_eq!(digest_of(["a"]).len(), 64);
    }
}

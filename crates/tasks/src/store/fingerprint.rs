//! Fingerprint of a schema.
//!
//! Until the first release, the schema is edited in place and stays at version 1. A database with
//! another fingerprint was created by a pre-release.

/// Error for a database that has the same schema version and another fingerprint.
pub(super) const PRE_RELEASE: &str =
    "created by a pre-release; delete it or start with an empty one";

/// Returns a fingerprint of SQL texts (FNV-1a, 64 bits). The fingerprint depends only on their
/// bytes.
pub(super) fn fingerprint(texts: &[&str]) -> String {
    let bytes = texts.iter().flat_map(|text| text.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn fingerprint_of_other_text_differs() {
        assert_eq!(fingerprint(&["a", "b"]), fingerprint(&["ab"]));
        assert_ne!(fingerprint(&["ab"]), fingerprint(&["ba"]));
        assert_eq!(fingerprint(&["a"]), "af63dc4c8601ec8c");
    }
}

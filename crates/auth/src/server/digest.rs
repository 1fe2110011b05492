//! SHA-256 hashes of tokens and proofs.

/// A SHA-256 hash.
pub(super) type Digest = [u8; ring::digest::SHA256_OUTPUT_LEN];

pub(super) fn digest(bytes: &[u8]) -> Digest {
    finished(ring::digest::digest(&ring::digest::SHA256, bytes))
}

pub(super) fn digest_of(context: ring::digest::Context) -> Digest {
    finished(context.finish())
}

fn finished(digest: ring::digest::Digest) -> Digest {
    digest.as_ref().try_into().expect("a SHA-256 hash has a fixed length")
}

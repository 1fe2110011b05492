//! The resource server: who is calling, by the token that the caller shows.
//!
//! - [`ResourceServer`]: the [`Authenticator`] of a server that takes tokens.
//! - [`Issuer`]: whose tokens, and how they are checked.
//!
//! A request goes from `shown` (the token in its head) over `known` (tokens found good before) or
//! `resource_server` (by signature: `keys`; by asking: `introspect`) to `token` (what it has to say)
//! and `dpop` (who may show it). Whoever is not let in is told why by `challenge`, and where to go by
//! `metadata`.
//!
//! [`Authenticator`]: outlive_transport::http::Authenticator

mod builder;
mod challenge;
mod discover;
mod dpop;
mod hierarchy;
mod introspect;
mod issuer;
mod issuer_check;
mod keys;
mod metadata;
mod nonce;
mod presented_token;
mod principal_name;
mod replay;
mod resource_server;
mod resource_uri;
mod token;
mod token_cache;

pub use builder::{ConfigError, ResourceServerBuilder};
pub use issuer::Issuer;
pub use issuer_check::IssuerCheck;
pub use principal_name::principal_name;
pub use resource_server::ResourceServer;
pub use resource_uri::ResourceUri;

/// A SHA-256 hash.
type Digest = [u8; ring::digest::SHA256_OUTPUT_LEN];

fn digest(bytes: &[u8]) -> Digest {
    finished(ring::digest::digest(&ring::digest::SHA256, bytes))
}

fn digest_of(context: ring::digest::Context) -> Digest {
    finished(context.finish())
}

fn finished(digest: ring::digest::Digest) -> Digest {
    digest.as_ref().try_into().expect("SHA-256 has its length")
}

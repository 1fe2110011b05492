//! Resource server: authenticates callers by their access tokens.
//!
//! - [`ResourceServer`]: the [`Authenticator`] of a server that accepts tokens.
//! - [`Issuer`]: a trusted issuer, and how its tokens are verified.
//!
//! `presented_token` reads the token of a request, and `token_cache` returns tokens that were
//! verified before. `resource_server` verifies other tokens by signature (`keys`) or by
//! introspection (`introspect`). `token` checks the claims, and `dpop` the proof. `challenge` and
//! `metadata` tell rejected clients how to get a token.
//!
//! [`Authenticator`]: outlive_transport::http::Authenticator

mod build_error;
mod builder;
mod challenge;
mod delegates;
mod digest;
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

pub use build_error::ResourceServerBuildError;
pub use builder::ResourceServerBuilder;
pub use delegates::Delegates;
pub use issuer::Issuer;
pub use issuer_check::IssuerCheck;
pub use principal_name::{person_name, principal_name};
pub use resource_server::ResourceServer;
pub use resource_uri::ResourceUri;

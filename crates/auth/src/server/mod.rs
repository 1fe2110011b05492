//! The resource server: who is calling, by the token that the caller shows.
//!
//! - [`ResourceServer`]: the [`Authenticator`] of a server that takes tokens.
//! - [`Issuer`]: whose tokens, and how they are checked.
//!
//! A request goes from `presented_token` (the token in its head) over `token_cache` (tokens found good before) or
//! `resource_server` (by signature: `keys`; by asking: `introspect`) to `token` (what it has to say)
//! and `dpop` (who may show it). Whoever is not let in is told why by `challenge`, and where to go by
//! `metadata`.
//!
//! [`Authenticator`]: outlive_transport::http::Authenticator

mod build_error;
mod builder;
mod challenge;
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
pub use issuer::Issuer;
pub use issuer_check::IssuerCheck;
pub use principal_name::principal_name;
pub use resource_server::ResourceServer;
pub use resource_uri::ResourceUri;

//! Signed tokens (RFC 7515, 7519) and the keys that sign them (RFC 7517, 8037).
//!
//! - [`Jws`]: a token in compact form; it returns its payload after the signature is verified.
//! - [`Algorithm`]: signature algorithms with key pairs only. `none` and shared secrets cannot be
//!   represented, so that they are never accepted by mistake.
//! - [`Jwk`], [`JwkSet`]: public keys and their thumbprints (RFC 7638).
//! - [`SigningKey`]: a private key for proofs, client authentication and issued tokens.
//! - [`Claims`]: the registered claims, borrowed from the token.
//!
//! The cryptography is that of `ring`.

mod algorithm;
mod base64url;
mod claims;
mod jwk;
mod jws;
mod sign;

pub use algorithm::{Algorithm, Algorithms};
pub use base64url::{decode as decode_base64url, encode as encode_base64url};
pub use claims::{Audience, Claims, Confirmation, StringOrList};
pub use jwk::{Jwk, JwkError, JwkSet};
pub use jws::{Header, Jws, JwsError};
pub use sign::{KeyError, SigningKey};

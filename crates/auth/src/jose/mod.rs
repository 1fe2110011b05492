//! Signed tokens (RFC 7515, 7519) and the keys that sign them (RFC 7517, 8037).
//!
//! - [`Jws`]: a token in its compact form; what it says is handed out once its signature is checked.
//! - [`Algorithm`]: only signatures with a key pair. There is no value for `none` or for a shared
//!   secret, so nothing can be confused into accepting one.
//! - [`Jwk`], [`JwkSet`]: public keys, and their thumbprints (RFC 7638).
//! - [`SigningKey`]: a private key, for proofs, for clients that authenticate with one, and for
//!   tokens of our own.
//! - [`Claims`]: the registered claims, borrowed from the token.
//!
//! The arithmetic is `ring`'s.

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

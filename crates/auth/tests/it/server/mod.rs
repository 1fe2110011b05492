//! Tests of the resource server, over sockets.

mod bad_tokens; // invalid tokens with status, header and error
mod dpop; // DPoP proofs
mod introspection; // token introspection
mod keys; // keys of an issuer: rotation, forged IDs, outages
mod metadata; // protected resource metadata
mod principals; // principals from tokens
mod scopes; // authorization by scope
pub(crate) mod support; // a protected server, an issuer, and a raw HTTP client

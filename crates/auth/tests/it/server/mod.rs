//! The resource server, over real sockets.

mod bad_tokens; // the table: every bad token with its status, header and error
mod dpop; // tokens that are bound to a key
mod introspection; // tokens that the issuer is asked about
mod keys; // the keys of an issuer: rotation, made-up names, outages
mod metadata; // what anybody may read
mod principals; // who a caller is to the rest of the server
mod scopes; // what a caller may see and do
pub(crate) mod support; // a protected server, an issuer, and a client made of bytes

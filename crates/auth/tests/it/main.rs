//! Behaviour of the crate, by subject.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod both; // our client at our server, with an issuer of signed tokens between them
mod client; // the OAuth client
mod fetch; // documents of others: what is fetched, and what is not
mod isolation; // two users, three tenants, two replicas: nobody reaches what is not theirs
mod jose; // signed tokens and their keys, held against the examples of the RFCs
mod server; // the resource server, over real sockets: who is let in, and what others are told
mod support; // helpers
#[cfg(feature = "tls")]
mod tls; // what is fetched over TLS, and from whom it is not

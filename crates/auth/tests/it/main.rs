//! Integration tests of the crate, by subject.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod both; // the OAuth client against the resource server
mod client; // the OAuth client
mod fetch; // the fetcher
mod isolation; // two users, three tenants, two replicas
mod jose; // signed tokens and keys
mod server; // the resource server, over sockets
mod support; // helpers
#[cfg(feature = "tls")]
mod tls; // fetching over TLS

//! Integration tests of the proxy over sockets, with a provider, a browser and clients.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod attacks; // strangers, other clients and other browsers
mod browser; // a test browser
mod clients; // registrations and client documents
mod idp; // an identity provider
mod logins; // logins and token lifetimes
mod scopes; // scopes of a user
mod secrets; // tokens of the provider stay secret
#[path = "../../../auth/tests/it/support/mod.rs"]
mod shared; // helpers shared with the tests of `outlive-auth`
mod store; // logins in the task store
mod support; // a server behind its proxy, with a provider behind that
mod tickets; // codes and refresh tokens

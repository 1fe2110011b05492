//! The proxy, over real sockets: a provider behind it, a browser and clients before it.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]
#![allow(clippy::needless_pass_by_value, reason = "tests hand over a `json!` where they write it")]

mod attacks; // what a stranger, another client or another browser tries with a login
mod browser; // keeps cookies, and goes where it is sent
mod clients; // who a client is: registrations, and documents
mod idp; // an identity provider
mod logins; // ways to a token, and what becomes of it
mod scopes; // which scopes a user gets
mod secrets; // where the provider's tokens are, and where they never are
#[path = "../../../auth/tests/it/support/mod.rs"]
mod shared; // helpers that the tests of the resource server and of the client have too
mod store; // logins that are kept with the tasks
mod support; // a server behind its proxy, with a provider behind that
mod tickets; // codes and refresh tokens: once, by whom they are for, in time

//! Behaviour of the crate, by subject.

#![allow(clippy::unwrap_used, reason = "all of this is tests, helpers included")]

mod client; // the OAuth client
mod fetch; // documents of others: what is fetched, and what is not
mod jose; // signed tokens and their keys, held against the examples of the RFCs
mod server; // the resource server, over real sockets: who is let in, and what others are told

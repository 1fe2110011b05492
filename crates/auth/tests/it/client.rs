//! Tests of the OAuth client against scripted servers.

mod discovery; // every URL at which metadata may be published
mod flows; // grants with and without a user
pub(crate) mod kit; // an MCP server, its authorization server, and an automatic login
mod logins; // loopback and manual logins
mod proofs; // DPoP proofs
mod scopes; // choice and extension of scopes
mod security;
mod token_storage; // storing, refreshing, sharing and deleting tokens // secrets, clear text, unsafe URLs and networks

//! The OAuth client, against servers of sockets and scripts.

mod discovery; // who protects a server: every place it may say so
mod flows; // ways to a token, with a person and without
mod keeping; // tokens that are kept, renewed, shared and forgotten
pub(crate) mod kit; // an MCP server, its authorization server, and a robot that logs in
mod logins; // the browser's way back, and the one by hand
mod proofs; // tokens that are bound to a key
mod scopes; // what is asked for, and what more
mod security; // what is never sent, opened, believed or shown

//! OAuth for MCP: who may call a server, and how a client gets to.
//!
//! - [`client`]: the OAuth client, which gets tokens for a client, and new ones when they are refused.
//! - [`fetch`]: documents of others, read with care.
//! - [`jose`]: signed tokens and the keys that sign them.
//! - [`server`]: the resource server, which names the callers of a server by their tokens.
//!
//! Tokens and keys are secrets: none of the types here shows one in `Debug`, in an error or in a log.

pub mod client;
pub mod fetch;
pub mod jose;
mod json;
pub mod server;

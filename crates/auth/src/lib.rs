//! OAuth for MCP: authentication of callers, and tokens for clients.
//!
//! - [`client`]: the OAuth client, which acquires and refreshes tokens.
//! - [`fetch`]: fetches documents of third parties with limits.
//! - [`jose`]: signed tokens and keys.
//! - [`server`]: the resource server, which authenticates callers by their tokens.
//!
//! Tokens and keys are secrets: no type shows one in `Debug`, in an error or in a log.

pub mod client;
pub mod fetch;
pub mod jose;
mod json;
pub mod server;

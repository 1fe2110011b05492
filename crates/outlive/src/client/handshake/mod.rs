//! Finds out which generation a server is of, and meets it.
//!
//! The newer is tried first, by asking who is there; then the handshake of the older; then, over
//! HTTP, the transport of 2024-11-05. What was found is remembered, and tried first the next time.
//! A refusal that says nothing about the generation (no access, too busy, no connection) is no reason
//! to try another.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

mod connect;
mod meet;
mod pipe;

pub(crate) use connect::connect;

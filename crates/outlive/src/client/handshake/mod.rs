//! Detection of a server's era, and negotiation of the protocol version.
//!
//! The client tries `server/discover`, then the legacy handshake, then (over HTTP) the transport of
//! 2024-11-05. It caches the era and tries it first next time. A failure that does not reveal the
//! era, such as missing access or a rate limit, ends the attempt.
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning>

mod connect;
mod meet;
mod pipe;

pub(crate) use connect::connect;

//! 2024-11-05 to 2025-11-25: a handshake opens a session, and the session stores the client's data.
//! Spec: <https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle>

mod client;
mod codec;
mod decode;
mod encode;
mod handshake;
mod input;
mod partial;
mod shape;
mod task;
mod task_request;
mod version_header;

pub use version_header::check_version_header;

pub(super) use client::LegacyClientCodec;
pub(super) use codec::LegacyCodec;
pub(super) use handshake::requested_version;
pub(crate) use handshake::{Reopened, open_session, reopen_session};
pub(super) use version_header::named_in;

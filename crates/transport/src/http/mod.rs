//! Streamable HTTP of both eras on one path, and the HTTP+SSE pair of 2024-11-05 beside it.
//!
//! ```text
//! request ─▶ guard (Host, Origin) ─▶ authenticate ─▶ route ─▶ post | get | delete ─▶ Body
//! ```
//!
//! - [`HttpService`]: the tower service; mount it in an axum app, or let [`serve`] listen.
//! - [`Authenticator`]: request parts to a principal; [`StaticTokens`] is the first one.
//! - [`Routes`]: what an application serves beside the endpoint.
//! - [`EventStore`]: what makes legacy streams resumable.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod admission;
mod auth;
mod body;
mod config;
mod cors;
mod delete;
mod events;
mod external;
mod get;
mod guard;
mod held;
mod http_sse;
mod idle;
mod listener;
mod negotiate;
mod pages;
mod peer;
mod portable;
mod post;
mod reply;
mod resume;
mod routes;
mod service;
mod sessions;
mod sse;
mod sse_reader;
mod tokens;

pub use auth::{Authenticator, Denied, Verdict};
pub use body::Body;
pub use config::HttpConfig;
pub use events::{Event, EventStore, MemoryEvents, StreamKey};
pub use guard::Allow;
pub use listener::{Serving, serve};
pub use routes::{Answering, Routes};
pub use service::HttpService;
pub use sse_reader::{SseEvent, SseReader, TooLarge};
pub use tokens::{StaticTokens, TokenFileError};

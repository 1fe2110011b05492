//! Streamable HTTP of both eras on one path, and HTTP+SSE of 2024-11-05 beside it.
//!
//! ```text
//! request ─▶ allowlist (Host, Origin) ─▶ authenticate ─▶ route ─▶ post | get | delete ─▶ Body
//! ```
//!
//! - [`HttpService`]: the tower service; mount it in an axum app, or let [`serve`] listen.
//! - [`Authenticator`]: maps request parts to a principal; [`StaticTokens`] is the simplest one.
//! - [`DocumentService`]: public documents of an authenticator, for applications that mount the
//!   endpoint.
//! - [`Routes`]: other routes of an application on the same listener.
//! - [`EventStore`]: stores events, so that legacy streams can be resumed.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http>

mod admission;
mod allowlist;
mod auth;
mod body;
mod config;
mod cors;
mod delete;
mod detached_stream;
mod document_service;
mod events;
mod external_event;
mod get;
mod head;
mod headers;
mod http_sse;
mod idle;
mod lifecycle;
mod listener;
mod negotiate;
mod pages;
mod peer;
mod post;
mod reply;
mod request_body;
mod resume;
mod routes;
mod service;
mod session_lookup;
mod sessions;
mod sse;
mod sse_streams;
mod state;
mod tokens;

pub use crate::sse_reader::{EventTooLarge, SseEvent, SseReader};
pub use allowlist::Allowlist;
pub use auth::{AuthDecision, AuthRejection, Authenticator};
pub use body::Body;
pub use config::HttpConfig;
pub use document_service::DocumentService;
pub use events::{Event, EventStore, MemoryEventStore, StreamKey};
pub use listener::{HttpServer, serve};
pub use routes::{EventSource, ResponseFuture, RouteBody, Routes};
pub use service::HttpService;
pub use tokens::{StaticTokens, TokenFileError};

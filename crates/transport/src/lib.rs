//! How messages travel: stdio, Streamable HTTP of both eras, HTTP+SSE, memory, and your own.
//!
//! A transport brings bytes to an [`Endpoint`](outlive_protocol::Endpoint), owns the run that comes
//! of them, and writes what the run says. It never asks which era a call is of.
//!
//! - `http`: a tower service to mount, and a listener of its own.
//! - `stdio`: the process's own pipe, both eras on it.
//! - [`lines`]: any byte stream, one message per line; [`memory`]: such a stream without sockets.
//! - [`messages`]: a transport of your own, message by message.
//! - `client`: the same ways, from the other end.
//! - [`sse_reader`]: server-sent events, as they come.
//!
//! Features: `server` and `client` are the sides; `http` adds HTTP for each side that is on; `tls` adds
//! `https:` for clients.

#[cfg_attr(
    not(all(feature = "http", feature = "server")),
    allow(dead_code, reason = "the HTTP server uses the rest")
)]
mod budget;
#[cfg_attr(
    not(all(feature = "http", feature = "server")),
    allow(dead_code, reason = "the HTTP server uses the rest")
)]
mod caller;
#[cfg(feature = "client")]
pub mod client;
mod clock;
#[cfg(all(feature = "http", feature = "server"))]
pub mod http;
pub mod lines;
pub mod memory;
pub mod messages;
#[cfg_attr(
    not(all(feature = "http", feature = "server")),
    allow(dead_code, reason = "the HTTP server uses the rest")
)]
mod pipe;
#[cfg(all(feature = "http", feature = "server"))]
mod shares;
pub mod sse_reader;
#[cfg(feature = "server")]
pub mod stdio;
#[cfg(feature = "server")]
mod stop;
#[cfg_attr(
    not(all(feature = "http", feature = "server")),
    allow(dead_code, reason = "the HTTP server uses the rest")
)]
mod tasks;
#[cfg(all(feature = "http", feature = "server"))]
mod warnings;

pub use clock::TokioClock;

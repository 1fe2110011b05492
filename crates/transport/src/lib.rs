//! Transports: stdio, Streamable HTTP of both eras, HTTP+SSE, in-memory and custom transports.
//!
//! A transport passes received messages to an [`Endpoint`](outlive_protocol::Endpoint), owns the
//! resulting run, and writes the messages of the run. It does not depend on the era of a call.
//!
//! - `http`: a tower service to mount, and a listener.
//! - `stdio`: standard input and output.
//! - [`lines`]: any byte stream, one message per line; [`memory`]: such a stream without sockets.
//! - [`messages`]: traits for a custom transport.
//! - `client`: the client side of these transports.
//! - [`sse_reader`]: an incremental parser for server-sent events.
//!
//! Features: `server` and `client` select the sides. `http` adds HTTP to the enabled sides. `tls`
//! adds `https:` for clients.

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
#[cfg(any(feature = "client", all(feature = "http", feature = "server")))]
mod warnings;

pub use clock::TokioClock;

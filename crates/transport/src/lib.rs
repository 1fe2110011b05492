//! How messages travel: stdio, Streamable HTTP of both eras, HTTP+SSE, memory, and your own.
//!
//! A transport brings bytes to an [`Endpoint`](outlive_protocol::Endpoint), owns the run that comes
//! of them, and writes what the run says. It never asks which era a call is of.
//!
//! - [`http`]: a tower service to mount, and a listener of its own.
//! - [`stdio`]: the process's own pipe, both eras on it.
//! - [`lines`]: any byte stream, one message per line; [`memory`]: such a stream without sockets.
//! - [`messages`]: a transport of your own, message by message.
//! - [`client`]: the same ways, from the other end.

mod budget;
mod caller;
pub mod client;
mod clock;
pub mod http;
pub mod lines;
pub mod memory;
pub mod messages;
mod pipe;
mod shares;
pub mod stdio;
mod stop;
mod tasks;
mod warnings;

pub use clock::TokioClock;

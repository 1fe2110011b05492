//! The client's half: how messages reach a server, and how its messages come back.
//!
//! There are two kinds of ways. On a [`pipe`] one channel carries everything, and answers find their
//! requests by id: a child process, a connection in memory, HTTP+SSE, any byte stream. Over
//! [`http`] every request has a stream of its own. Neither knows a revision: what is written, and
//! what an answer means, is for the eras.

pub mod child;
mod error;
pub mod http;
pub mod pipe;
#[cfg(feature = "tls")]
mod tls;

pub use error::{TransportError, TransportErrorKind};

//! The client's half: how messages reach a server, and how its messages come back.
//!
//! There are two kinds of ways. On a [`pipe`] one channel carries everything, and answers find their
//! requests by id: a child process, a connection in memory, HTTP+SSE, any byte stream. Over
//! [`http`] every request has a stream of its own. Neither knows a revision: what is written, and
//! what an answer means, is for the eras.

mod challenge;
pub mod child;
mod error;
#[cfg_attr(not(feature = "http"), path = "no_http.rs")]
pub mod http;
mod http_options;
mod network_policy;
pub mod pipe;
mod secret;
mod token;

pub use challenge::Challenge;
pub use error::{TransportError, TransportErrorKind};
pub use network_policy::{NetworkPolicy, is_loopback_host, is_public};
pub use secret::SecretString;
pub use token::{StaticToken, Token, TokenError, TokenRequest, TokenResponse, TokenSource, Tokens};

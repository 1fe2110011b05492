//! Client side of the transports.
//!
//! On a [`pipe`], one channel carries all messages, and responses match their requests by ID: child
//! processes, in-memory connections, HTTP+SSE and byte streams. Over [`http`], each request has its
//! own response or stream. No transport depends on a protocol version; the codecs of the eras read
//! and write the messages.

mod challenge;
pub mod child;
mod error;
#[cfg_attr(not(feature = "http"), path = "no_http.rs")]
pub mod http;
mod http_options;
mod network_policy;
pub mod pipe;
#[cfg_attr(not(unix), path = "no_process_group.rs")]
mod process_group;
mod secret;
mod token;

pub use challenge::Challenge;
pub use error::{TransportError, TransportErrorKind};
pub use network_policy::{NetworkPolicy, is_loopback_host, is_public};
pub use secret::SecretString;
pub use token::{StaticToken, Token, TokenError, TokenRequest, TokenResponse, TokenSource, Tokens};

//! Fetches what authorization needs from places that others have named: metadata, keys, tokens.
//!
//! A URL in a document of somebody else is a way to have this process call its own network. So every
//! fetch is over TLS or stays on this machine, goes to addresses of a chosen [`NetworkPolicy`] only (the
//! address that was judged is the one that is connected to), is not redirected to another origin,
//! has an end, and reads so many bytes and no more. Nothing of a query or a body is in an error.
//! Spec: <https://modelcontextprotocol.io/docs/tutorials/security/security_best_practices>

mod error;
mod fetcher;
pub mod form;

pub use crate::json::object as read_object;
pub use error::{FetchError, FetchErrorKind};
pub use fetcher::{FetchResponse, Fetcher};
pub use outlive_transport::client::{NetworkPolicy, is_loopback_host, is_public};

//! Fetches metadata, keys and tokens from URLs of third parties.
//!
//! A URL in a document of a third party can make this process call its own network (SSRF). A fetch
//! therefore uses TLS or a loopback address, applies a [`NetworkPolicy`] to the address that it
//! connects to, and does not follow redirects to another origin. Time and size are limited. Errors
//! contain no query and no body.
//! Spec: <https://modelcontextprotocol.io/docs/tutorials/security/security_best_practices>

mod error;
mod fetcher;
pub mod form;

pub use crate::json::object as read_object;
pub use error::{FetchError, FetchErrorKind};
pub use fetcher::{FetchResponse, Fetcher};
pub use outlive_transport::client::{NetworkPolicy, is_loopback_host, is_public};

//! HTTP/1.1: a client for any server, and a link to one MCP server on top of it.
//!
//! [`HttpClient`] pools connections (hyper-util), applies proxies and a
//! [`NetworkPolicy`](super::NetworkPolicy), and uses rustls for TLS. The client never follows a
//! redirect, and its errors say whether a request was sent.

mod address;
mod client;
mod connector;
mod dialer;
mod http_sse;
mod link;
mod reply;
mod request_body;
mod resolver;
mod stream;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;

pub use crate::client::http_options::HttpOptions;
pub use address::Address;
pub use client::HttpClient;
pub use http_sse::HttpSse;
pub use link::HttpLink;
pub use reply::HttpReply;

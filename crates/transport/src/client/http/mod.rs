//! HTTP/1.1: a client for any server, and a link to one MCP server on top of it.
//!
//! [`HttpClient`] pools connections (hyper-util), connects through proxies and under a
//! [`NetworkPolicy`](super::NetworkPolicy), and secures connections with rustls. A client of MCP never
//! follows a redirect, and wants to know whether a request was sent.

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

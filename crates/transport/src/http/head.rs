//! The head of a request that has been authenticated.

use std::net::IpAddr;

use http::request::Parts;
use outlive_protocol::Principal;

/// The head of a request, and the principal and address that sent it.
pub(super) struct Head {
    pub(super) parts: Box<Parts>,
    pub(super) principal: Principal,
    pub(super) peer: Option<IpAddr>,
}

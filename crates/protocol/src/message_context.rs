//! The context of a message: data that the transport knows besides the bytes.

use std::{net::IpAddr, sync::Arc};

use http::request::Parts;

use crate::{InFlight, Principal, Session};

/// The context of a message: data that the transport knows besides the bytes.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "transports build it, custom ones included")]
pub struct MessageContext<'a> {
    /// Principal of the sender.
    pub principal: Principal,
    /// Legacy session of the message.
    pub session: Option<Arc<Session>>,
    /// Table in which a cancellation finds its call.
    pub in_flight: Option<&'a InFlight>,
    /// Network address of the sender.
    pub peer: Option<IpAddr>,
    /// HTTP request that carried the message. Boxed, because it is large and moved several times.
    pub http: Option<Box<Parts>>,
    /// Whether legacy requests need no session.
    pub stateless: bool,
    /// Whether the message names a session that does not exist or belongs to another principal.
    pub lost_session: bool,
    /// Whether only legacy clients use the transport.
    pub legacy_only: bool,
}

impl MessageContext<'_> {
    /// Returns a context with a principal and nothing else.
    pub fn of(principal: Principal) -> Self {
        Self {
            principal,
            session: None,
            in_flight: None,
            peer: None,
            http: None,
            stateless: false,
            lost_session: false,
            legacy_only: false,
        }
    }
}

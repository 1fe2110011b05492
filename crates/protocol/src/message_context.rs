//! What a transport knows about a message besides its bytes.

use std::{net::IpAddr, sync::Arc};

use http::request::Parts;

use crate::{InFlight, Principal, Session};

/// What a transport knows about a message besides its bytes.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "transports build it, custom ones included")]
pub struct MessageContext<'a> {
    /// The principal that sent it.
    pub principal: Principal,
    /// The legacy session it belongs to, if there is one.
    pub session: Option<Arc<Session>>,
    /// Where cancellations look for the call they mean.
    pub in_flight: Option<&'a InFlight>,
    /// The address it came from.
    pub peer: Option<IpAddr>,
    /// The HTTP request that brought it. Boxed: it is large, and it is handed on a few times.
    pub http: Option<Box<Parts>>,
    /// Whether legacy requests are served without a session.
    pub stateless: bool,
    /// Whether it names a session that does not exist, or not for this principal.
    pub lost_session: bool,
    /// Whether the transport is one that only legacy clients use.
    pub legacy_only: bool,
}

impl MessageContext<'_> {
    /// Returns the context of a message of which only the principal is known.
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

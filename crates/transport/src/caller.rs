//! The caller that limits count: the principal, or the network address of an anonymous client.

use std::net::{IpAddr, Ipv6Addr};

use outlive_protocol::Principal;

/// A caller, as limits count callers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    Principal(Principal),
    /// A network in the form that [`network`] returns.
    Network(IpAddr),
}

impl Caller {
    /// Returns the caller of a request.
    ///
    /// Returns `None` for an anonymous client without a known address. Only the total limits apply
    /// to such clients: a share for all of them could be used up by one.
    pub(crate) fn new(principal: &Principal, peer: Option<IpAddr>) -> Option<Self> {
        match principal.is_anonymous() {
            true => peer.map(|address| Self::Network(network(address))),
            false => Some(Self::Principal(principal.clone())),
        }
    }
}

/// Returns the network that limits count as one address.
///
/// For IPv6, the network is the first 64 bits, because a client usually controls all addresses of
/// its /64.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use outlive_protocol::Principal;

    use super::Caller;

    fn caller(principal: &Principal, address: &str) -> Option<Caller> {
        Caller::new(principal, address.parse::<IpAddr>().ok())
    }

    #[test]
    fn caller_is_counted_by_principal_or_by_network_if_anonymous() {
        let ann = Principal::named("ann");
        assert_eq!(caller(&ann, "192.0.2.1"), caller(&ann, "192.0.2.2"));
        assert_ne!(caller(&ann, "192.0.2.1"), caller(&Principal::named("ben"), "192.0.2.1"));
        let nobody = Principal::ANONYMOUS;
        assert_ne!(caller(&nobody, "192.0.2.1"), caller(&nobody, "192.0.2.2"));
        assert_eq!(caller(&nobody, "192.0.2.1"), caller(&nobody, "::ffff:192.0.2.1"));
        assert_eq!(caller(&nobody, "2001:db8::1"), caller(&nobody, "2001:db8::2:1"));
        assert_ne!(caller(&nobody, "2001:db8::1"), caller(&nobody, "2001:db8:0:1::1"));
        assert_eq!(caller(&nobody, ""), None);
    }
}

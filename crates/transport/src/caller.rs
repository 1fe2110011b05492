//! Whom limits count: the principal, or the network address of an anonymous client.

use std::net::{IpAddr, Ipv6Addr};

use outlive_protocol::Principal;

/// One caller, as limits count it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Caller {
    Principal(Principal),
    /// As [`network`] writes it.
    Network(IpAddr),
}

impl Caller {
    /// The caller of a request. `None` if neither a name nor an address is known: then only the
    /// totals apply, because one share for all such clients would let one of them use it up.
    pub(crate) fn new(principal: &Principal, peer: Option<IpAddr>) -> Option<Self> {
        match principal.is_anonymous() {
            true => peer.map(|address| Self::Network(network(address))),
            false => Some(Self::Principal(principal.clone())),
        }
    }
}

/// What counts as one address: of IPv6 the first 64 bits, because a client that has one address of
/// such a network has all of them.
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
    fn named_callers_count_by_name_and_others_by_network() {
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

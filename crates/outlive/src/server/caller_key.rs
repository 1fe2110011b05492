//! The key under which limits and quotas count a caller.

use std::net::{IpAddr, Ipv6Addr};

use outlive_protocol::Call;

/// Returns the caller that limits count: the principal, or the network address of an anonymous
/// client.
pub(crate) fn caller_key(call: &Call) -> String {
    match (call.principal().is_anonymous(), call.peer_addr()) {
        (true, Some(peer)) => network(peer),
        _ => call.principal().key().to_owned(),
    }
}

/// Returns the network that counts as one caller. For IPv6 it is the /64 prefix, because a client
/// can use every address of its network.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn network_of_ipv6_address_is_its_64_bit_prefix() {
        for (address, counted) in [
            ("192.0.2.7", "192.0.2.7"),
            ("::ffff:192.0.2.7", "192.0.2.7"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
            ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
            ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ] {
            assert_eq!(network(address.parse().unwrap()), counted);
        }
    }
}

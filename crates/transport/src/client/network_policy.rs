//! Network policy: the addresses that outgoing connections may reach.
//!
//! A URL in a document of a third party can make this process call its own network (SSRF). The
//! client therefore checks every resolved address and connects only to a checked address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that the client may connect to. Each variant after `Public` includes the variant
/// before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NetworkPolicy {
    /// Loopback addresses only.
    Loopback,
    /// Public internet addresses only.
    #[default]
    Public,
    /// Also loopback and private networks. Excludes link-local addresses, where clouds serve their
    /// instance metadata and credentials.
    Local,
    /// Any address.
    Anywhere,
}

impl NetworkPolicy {
    /// Returns the narrowest policy that allows `ip`, starting with `Public`.
    pub fn for_address(ip: IpAddr) -> Self {
        if is_public(ip) {
            Self::Public
        } else if is_local(ip) {
            Self::Local
        } else {
            Self::Anywhere
        }
    }

    /// Returns whether the policy allows connections to `ip`.
    pub fn allows(self, ip: IpAddr) -> bool {
        match self {
            Self::Loopback => is_loopback(ip),
            Self::Public => is_public(ip),
            Self::Local => is_public(ip) || is_local(ip),
            Self::Anywhere => true,
        }
    }
}

/// Returns whether `host` is a loopback name or address.
pub fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || host.parse().is_ok_and(is_loopback)
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Returns whether `ip` is a public internet address.
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_local(ip: IpAddr) -> bool {
    /// Address of the AWS instance metadata service. It is inside the private range.
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || is_shared(ip),
        IpAddr::V6(ip) => ip.is_loopback() || (ip.is_unique_local() && ip != METADATA),
    }
}

/// Returns whether `ip` is in the range for carrier-grade NAT (RFC 6598).
fn is_shared(ip: Ipv4Addr) -> bool {
    matches!(ip.octets(), [100, 64..=127, ..])
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let special = ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_documentation()
        || ip.is_multicast()
        || is_shared(ip)
        // "This network", protocol assignments, benchmarking, reserved and broadcast addresses.
        || matches!(ip.octets(), [0, ..] | [192, 0, 0, _] | [198, 18..=19, ..] | [240..=255, ..]);
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let part = ip.segments();
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        Ipv4Addr::new(a, b, c, d)
    };
    match part {
        // NAT64 and 6to4 addresses contain an IPv4 address, which decides.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Teredo tunnels, documentation, and local-use NAT64.
        [0x2001, 0 | 0xdb8, ..] | [0x64, 0xff9b, ..] => false,
        // Only this block is allocated; loopback, private, link-local and multicast are outside of
        // it.
        [first, ..] => (0x2000..=0x3fff).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::{NetworkPolicy, is_loopback};

    // ACL-24
    #[test]
    fn address_needs_the_policy_of_its_range() {
        for (ips, policy) in [
            (
                &["8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8", "64:ff9b::808:808"][..],
                NetworkPolicy::Public,
            ),
            (
                &[
                    "127.0.0.1",
                    "::1",
                    "10.1.2.3",
                    "172.16.0.1",
                    "192.168.1.1",
                    "100.64.0.1",
                    "fd12::1",
                    "::ffff:10.0.0.1",
                ],
                NetworkPolicy::Local,
            ),
            (
                &[
                    "169.254.169.254",
                    "0.0.0.0",
                    "255.255.255.255",
                    "224.0.0.1",
                    "fe80::1",
                    "::",
                    "ff02::1",
                    "fd00:ec2::254",
                    "192.0.2.1",
                    "198.18.0.1",
                    "2001:db8::1",
                    "2002:a00:1::",
                    "64:ff9b::a9fe:a9fe",
                    "2001::1",
                ],
                NetworkPolicy::Anywhere,
            ),
        ] {
            for ip in ips {
                assert_eq!(NetworkPolicy::for_address(ip.parse().unwrap()), policy, "{ip}");
            }
        }
        assert!(is_loopback("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!NetworkPolicy::Loopback.allows("10.0.0.1".parse().unwrap()));
    }
}

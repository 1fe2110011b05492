//! Which addresses outgoing connections may policy.
//!
//! A URL in a document of another party is a way to make this process call its own network (SSRF). So
//! the client checks every address that a name resolves to, and connects to a checked address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses that connections may go to. From `Public` on, each includes the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NetworkPolicy {
    /// This machine only.
    Loopback,
    /// Addresses of the internet only.
    #[default]
    Public,
    /// Also this machine and private networks; not the link-local addresses at which clouds hand out
    /// their secrets.
    Local,
    /// Any address.
    Anywhere,
}

impl NetworkPolicy {
    /// Returns the narrowest policy, from `Public` on, that allows `ip`.
    pub fn for_address(ip: IpAddr) -> Self {
        if is_public(ip) {
            Self::Public
        } else if is_local(ip) {
            Self::Local
        } else {
            Self::Anywhere
        }
    }

    /// Returns whether connections may go to `ip`.
    pub fn allows(self, ip: IpAddr) -> bool {
        match self {
            Self::Loopback => is_loopback(ip),
            Self::Public => is_public(ip),
            Self::Local => is_public(ip) || is_local(ip),
            Self::Anywhere => true,
        }
    }
}

/// Returns whether the name of a host is that of this machine.
pub fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.to_ascii_lowercase().ends_with(".localhost")
        || host.parse().is_ok_and(is_loopback)
}

fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// Whether an address is one of the internet's.
pub fn is_public(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_local(ip: IpAddr) -> bool {
    /// Where a cloud hands out secrets over IPv6, in the midst of the private ones.
    const METADATA: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private() || is_shared(ip),
        IpAddr::V6(ip) => ip.is_loopback() || (ip.is_unique_local() && ip != METADATA),
    }
}

/// The addresses between a provider and its customers.
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
        // This network; protocol assignments; measuring; reserved and broadcast.
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
        // An IPv4 address by another name is judged as that address.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Tunnels, documentation, translation within a site.
        [0x2001, 0 | 0xdb8, ..] | [0x64, 0xff9b, ..] => false,
        // Only this block has been given out; loopback, private, link-local and multicast are outside.
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

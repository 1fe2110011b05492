//! Client address of a request: the address of the connection, or the forwarded address if the
//! connection comes from a trusted proxy.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

/// Header to which each proxy appends the address of its client.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Returns the client address of a request. Clients can forge the header, so entries before the
/// first untrusted address are ignored.
pub(super) fn of(
    connected: Option<IpAddr>,
    headers: &HeaderMap,
    trusted: &[IpAddr],
) -> Option<IpAddr> {
    let mut peer = connected?.to_canonical();
    if !trusted.contains(&peer) {
        return Some(peer);
    }
    let lines: Vec<&str> =
        headers.get_all(FORWARDED_FOR).iter().filter_map(|line| line.to_str().ok()).collect();
    for hop in lines.iter().rev().flat_map(|line| line.rsplit(',')) {
        // An entry that is malformed is not trusted: the proxy counts as the client.
        let Some(address) = read(hop.trim()) else { break };
        peer = address;
        if !trusted.contains(&peer) {
            break;
        }
    }
    Some(peer)
}

/// Parses an address. Some proxies append the port.
fn read(hop: &str) -> Option<IpAddr> {
    let address = hop.parse::<IpAddr>().ok();
    let address = address.or_else(|| hop.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use http::{HeaderMap, HeaderValue};

    fn check(connected: &str, lines: &[&'static str], expected: &str) {
        let trusted: Vec<IpAddr> =
            ["10.0.0.1", "10.0.0.2", "::1"].map(|address| address.parse().unwrap()).to_vec();
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(super::FORWARDED_FOR, HeaderValue::from_static(line));
        }
        let peer = super::of(Some(connected.parse().unwrap()), &headers, &trusted);
        assert_eq!(peer, Some(expected.parse().unwrap()), "{connected} {lines:?}");
        let untrusted = super::of(Some(connected.parse().unwrap()), &headers, &[]).unwrap();
        assert_eq!(untrusted, connected.parse::<IpAddr>().unwrap().to_canonical());
    }

    #[test]
    fn forwarded_address_is_used_only_behind_trusted_proxies() {
        check("192.0.2.9", &["198.51.100.1"], "192.0.2.9");
        check("10.0.0.1", &[], "10.0.0.1");
        check("10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["203.0.113.7, 198.51.100.1"], "198.51.100.1");
        check("10.0.0.1", &["198.51.100.1, 10.0.0.2"], "198.51.100.1");
        check("10.0.0.1", &["203.0.113.7", "198.51.100.1, 10.0.0.2"], "198.51.100.1");
        check("10.0.0.1", &["10.0.0.2"], "10.0.0.2");
        check("10.0.0.1", &["198.51.100.1, nonsense"], "10.0.0.1");
        check("::1", &["[2001:db8::7]:4711"], "2001:db8::7");
        check("::1", &["198.51.100.1:80"], "198.51.100.1");
    }
}

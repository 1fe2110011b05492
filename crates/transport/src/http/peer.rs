//! Which address a request comes from: that of the connection, or, if that is a proxy that is
//! trusted, whom the proxy says it speaks for.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;

/// Where proxies write whom they speak for, each behind those before it.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// The address that a request comes from. Clients can write the header, too: what stands in front of
/// the first address that is not trusted is not looked at.
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
        // What cannot be read is nobody's word: it is the proxy that is counted.
        let Some(address) = read(hop.trim()) else { break };
        peer = address;
        if !trusted.contains(&peer) {
            break;
        }
    }
    Some(peer)
}

/// An address; some proxies add the port.
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
        let nobody = super::of(Some(connected.parse().unwrap()), &headers, &[]).unwrap();
        assert_eq!(nobody, connected.parse::<IpAddr>().unwrap().to_canonical());
    }

    #[test]
    fn a_header_counts_only_as_far_as_proxies_are_trusted() {
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

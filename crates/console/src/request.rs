//! A request to the console: its path below the console, its values, and its client.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header, request::Parts};
use outlive::server::http::Authenticator;

use crate::urlencoded::{self, Values};

/// A request to a path of the console.
pub(crate) struct ConsoleRequest {
    pub(crate) parts: Parts,
    pub(crate) body: Bytes,
    /// Path below the console, without a slash at its start, as the client sent it: `tasks/ID`.
    pub(crate) path: String,
}

impl ConsoleRequest {
    /// Creates a request whose path is `path` below the console.
    pub(crate) fn new(request: Request<Bytes>, path: String) -> Self {
        let (parts, body) = request.into_parts();
        Self { parts, body, path }
    }

    pub(crate) fn method(&self) -> &Method {
        &self.parts.method
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.parts.headers
    }

    /// Returns whether the request reads. HEAD is a GET whose body is dropped.
    pub(crate) fn is_read(&self) -> bool {
        matches!(*self.method(), Method::GET | Method::HEAD)
    }

    /// Returns the segments of the path, without decoding them.
    pub(crate) fn segments(&self) -> Vec<&str> {
        self.path.split('/').collect()
    }

    /// Returns the values of the query.
    pub(crate) fn query(&self) -> Values {
        Values::decode(self.parts.uri.query().unwrap_or_default().as_bytes())
    }

    /// Returns the values of a submitted form.
    pub(crate) fn form(&self) -> Values {
        Values::decode(&self.body)
    }

    /// Returns the address of the client, if it is known.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.parts.extensions.get::<IpAddr>().map(IpAddr::to_canonical)
    }

    /// Returns the network of the client, which rate limits count. A client usually controls all
    /// IPv6 addresses of its /64.
    pub(crate) fn network(&self) -> String {
        match self.address() {
            None => "unknown".to_owned(),
            Some(IpAddr::V6(address)) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).to_string()
            }
            Some(address) => address.to_string(),
        }
    }

    /// Returns the authenticator of the MCP endpoint.
    pub(crate) fn authenticator(&self) -> Option<&Arc<dyn Authenticator>> {
        self.parts.extensions.get()
    }

    /// Returns the host and port that the client connects to, if the request has exactly one.
    pub(crate) fn host(&self) -> Option<&str> {
        let mut values = self.headers().get_all(header::HOST).iter();
        let host = values.next()?.to_str().ok()?;
        values.next().is_none().then_some(host)
    }

    /// Returns the relative prefix of links from this page to the root of the console.
    pub(crate) fn base(&self) -> String {
        match self.path.matches('/').count() {
            0 => "./".to_owned(),
            depth => "../".repeat(depth),
        }
    }
}

/// Decodes a segment of a path.
pub(crate) fn decoded(segment: &str) -> String {
    urlencoded::decode_path(segment)
}

/// Returns whether a host is an address of this machine.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::{Bytes, ConsoleRequest, IpAddr, Request, is_loopback_host};

    fn request(path: &str, address: &str) -> ConsoleRequest {
        let mut request = Request::new(Bytes::new());
        if let Ok(address) = address.parse::<IpAddr>() {
            request.extensions_mut().insert(address);
        }
        ConsoleRequest::new(request, path.to_owned())
    }

    #[test]
    fn base_leads_from_a_page_to_the_root_of_the_console() {
        for (path, base) in
            [("", "./"), ("tasks", "./"), ("tasks/1", "../"), ("inputs/1/k", "../../")]
        {
            assert_eq!(request(path, "").base(), base, "{path}");
        }
    }

    #[test]
    fn network_of_ipv6_addresses_is_their_prefix() {
        assert_eq!(request("", "2001:db8::1").network(), request("", "2001:db8::2").network());
        assert_eq!(request("", "::ffff:192.0.2.1").network(), "192.0.2.1");
        assert_eq!(request("", "").network(), "unknown");
    }

    #[test]
    fn hosts_of_this_machine_are_loopback() {
        for host in ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:8000", "[::1]"] {
            assert!(is_loopback_host(host), "{host}");
        }
        for host in ["example.com", "localhost.example.com", "127.0.0.1.example.com", "0.0.0.0"] {
            assert!(!is_loopback_host(host), "{host}");
        }
    }
}

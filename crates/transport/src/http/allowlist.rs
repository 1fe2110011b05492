//! Allowlists for `Host` and `Origin`.
//!
//! They protect a local server from web pages that reach it through the user's browser (DNS
//! rebinding).

use http::{HeaderMap, header};

/// Permitted host names or origins.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Allowlist {
    /// Loopback names only, on any port.
    Loopback,
    /// Loopback names and the listed names. A host is a name without a port; an origin has scheme,
    /// host and port as a browser sends them.
    Listed(Vec<String>),
    /// All names. Safe only if another component authenticates clients.
    Any,
}

impl Allowlist {
    pub(crate) fn add(&mut self, name: String) {
        match self {
            Self::Loopback => *self = Self::Listed(vec![name]),
            Self::Listed(names) => names.push(name),
            Self::Any => {}
        }
    }

    fn names(&self) -> &[String] {
        match self {
            Self::Listed(names) => names,
            Self::Loopback | Self::Any => &[],
        }
    }
}

/// Returns whether the `Host` of a request is permitted. HTTP/2 sends the host in the URI.
pub(crate) fn host_allowed(allow: &Allowlist, headers: &HeaderMap, uri: &http::Uri) -> bool {
    if matches!(allow, Allowlist::Any) {
        return true;
    }
    let mut values = headers.get_all(header::HOST).iter();
    let host = match (values.next(), values.next()) {
        (Some(value), None) => value.as_bytes(),
        (None, _) => uri.authority().map_or(&b""[..], |authority| authority.as_str().as_bytes()),
        (Some(_), Some(_)) => return false,
    };
    let name = without_port(host);
    is_loopback(name)
        || allow.names().iter().any(|known| known.as_bytes().eq_ignore_ascii_case(name))
}

/// Returns whether the `Origin` of a request is permitted. A request without `Origin` does not come
/// from a web page.
pub(crate) fn origin_allowed(allow: &Allowlist, headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::ORIGIN).iter();
    match (values.next(), values.next()) {
        (None, _) => true,
        (Some(_), Some(_)) => false,
        (Some(origin), None) => {
            let origin = origin.as_bytes();
            matches!(allow, Allowlist::Any)
                || is_loopback_origin(origin)
                || allow.names().iter().any(|known| known.as_bytes().eq_ignore_ascii_case(origin))
        }
    }
}

fn is_loopback(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"localhost") || matches!(name, b"127.0.0.1" | b"[::1]")
}

fn is_loopback_origin(origin: &[u8]) -> bool {
    let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    host.is_some_and(|host| is_loopback(without_port(host)))
}

fn without_port(host: &[u8]) -> &[u8] {
    match memchr::memrchr(b':', host) {
        Some(colon) if host[colon + 1..].iter().all(u8::is_ascii_digit) => &host[..colon],
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, Uri, header};

    use super::{Allowlist, host_allowed, origin_allowed};

    fn with(name: &header::HeaderName, values: &[&'static str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), HeaderValue::from_static(value));
        }
        headers
    }

    #[track_caller]
    fn host(allow: &Allowlist, values: &[&'static str], expected: bool) {
        let headers = with(&header::HOST, values);
        assert_eq!(
            host_allowed(allow, &headers, &Uri::from_static("/mcp")),
            expected,
            "{values:?}"
        );
    }

    #[track_caller]
    fn origin(allow: &Allowlist, values: &[&'static str], expected: bool) {
        assert_eq!(origin_allowed(allow, &with(&header::ORIGIN, values)), expected, "{values:?}");
    }

    #[test]
    fn host_not_on_the_allowlist_is_rejected() {
        for permitted in ["localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:8000", "[::1]"] {
            host(&Allowlist::Loopback, &[permitted], true);
        }
        for foreign in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "::1"]
        {
            host(&Allowlist::Loopback, &[foreign], false);
        }
        host(&Allowlist::Loopback, &[], false);
        host(&Allowlist::Loopback, &["localhost", "evil.example"], false);
        host(&Allowlist::Listed(vec!["mcp.example".into()]), &["MCP.example:443"], true);
        host(&Allowlist::Any, &["evil.example"], true);
    }

    #[test]
    fn origin_not_on_the_allowlist_is_rejected() {
        origin(&Allowlist::Loopback, &[], true);
        origin(&Allowlist::Loopback, &["http://localhost:6274"], true);
        origin(&Allowlist::Loopback, &["https://evil.example"], false);
        origin(&Allowlist::Loopback, &["null"], false);
        origin(&Allowlist::Loopback, &["http://localhost", "https://evil.example"], false);
        origin(
            &Allowlist::Listed(vec!["https://app.example".into()]),
            &["https://app.example"],
            true,
        );
    }
}

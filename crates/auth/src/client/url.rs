//! URLs that are parsed but never normalized.
//!
//! Resources and issuers are compared and sent byte for byte. A parser that adds a slash or a port
//! would change an identifier.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    url: String,
    /// Byte offsets of the ends of the origin and the path.
    origin: usize,
    path: usize,
}

impl Place {
    /// Parses an `http:` or `https:` URL.
    pub(super) fn parse(url: &str) -> Option<Self> {
        // Clients do not send the fragment.
        let url = url.split('#').next()?.to_owned();
        let (scheme, rest) = url.split_once("://")?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return None;
        }
        let host = rest.split(['/', '?']).next()?;
        if host.is_empty() || host.contains(['@', '\\', ' ']) {
            return None;
        }
        let origin = scheme.len() + 3 + host.len();
        let path = url[origin..].find('?').map_or(url.len(), |at| origin + at);
        Some(Self { url, origin, path })
    }

    /// Returns scheme, host and port.
    pub(super) fn origin(&self) -> &str {
        &self.url[..self.origin]
    }

    /// Returns the path. Empty if the path is the root.
    pub(super) fn path(&self) -> &str {
        match &self.url[self.origin..self.path] {
            "/" => "",
            path => path,
        }
    }

    /// Returns the URL without its query.
    pub(super) fn without_query(&self) -> &str {
        &self.url[..self.path]
    }

    /// Returns the query with its `?`, or an empty string.
    pub(super) fn query(&self) -> &str {
        &self.url[self.path..]
    }

    /// Returns the host without the port.
    pub(super) fn host(&self) -> &str {
        let authority = self.authority();
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|it| it.is_ascii_digit()) => host,
            _ => authority,
        }
    }

    pub(super) fn is_tls(&self) -> bool {
        self.url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
    }

    pub(super) fn port(&self) -> u16 {
        let authority = self.authority();
        let named = authority[self.host().len()..].strip_prefix(':').and_then(|it| it.parse().ok());
        named.unwrap_or(if self.is_tls() { 443 } else { 80 })
    }

    pub(super) fn is_same_origin(&self, other: &Self) -> bool {
        self.is_tls() == other.is_tls()
            && self.host().eq_ignore_ascii_case(other.host())
            && self.port() == other.port()
    }

    /// Returns whether this URL is the resource or below it: the same origin, and the same path or
    /// a subpath.
    pub(super) fn is_within(&self, resource: &str) -> bool {
        let Some(resource) = Self::parse(resource) else { return false };
        let above = resource.path().trim_end_matches('/');
        let below = self.path().strip_prefix(above);
        self.is_same_origin(&resource)
            && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            && (resource.url.len() == resource.path
                || self.url[self.path..] == resource.url[resource.path..])
    }

    fn authority(&self) -> &str {
        self.origin().split_once("://").map_or("", |(_, authority)| authority)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query may contain a secret.
        f.write_str(self.without_query())
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[test]
    fn url_is_split_without_normalization() {
        let place = Place::parse("HTTPS://Example.com:8443/a/b?c=d#e").unwrap();
        assert_eq!(place.origin(), "HTTPS://Example.com:8443");
        assert_eq!((place.path(), place.host(), place.port()), ("/a/b", "Example.com", 8443));
        assert_eq!(place.query(), "?c=d");
        assert_eq!(place.without_query(), "HTTPS://Example.com:8443/a/b");
        let bare = Place::parse("http://[::1]").unwrap();
        assert_eq!((bare.path(), bare.host(), bare.port()), ("", "[::1]", 80));
        for url in ["ftp://a", "a.b/c", "https://", "https://u@a/", "javascript:alert(1)"] {
            assert!(Place::parse(url).is_none(), "{url}");
        }
    }

    // ACL-05
    #[test]
    fn server_url_below_its_resource_is_accepted() {
        let server = Place::parse("https://a.b/x/mcp").unwrap();
        for resource in
            ["https://a.b/x/mcp", "https://A.b:443/x/mcp/", "https://a.b", "https://a.b/x"]
        {
            assert!(server.is_within(resource), "{resource}");
        }
        for resource in [
            "https://a.b/x/m",
            "http://a.b/x/mcp",
            "https://a.b:444/x/mcp",
            "https://evil/x/mcp",
            "https://a.b/x/mcp/y",
            "https://a.b/x/mcp?tenant=1",
            "a.b",
        ] {
            assert!(!server.is_within(resource), "{resource}");
        }
    }
}

//! URL of a server, split into the parts that a request needs.

use std::fmt;

use http::{HeaderValue, Uri, uri::Scheme};

use crate::client::error::{TransportError, TransportErrorKind};

/// An `http:` or `https:` URL.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    uri: Uri,
    is_tls: bool,
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query may contain a secret.
        write!(f, "{}{}", self.origin(), self.uri.path())
    }
}

impl Address {
    /// Parses a URL.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is malformed, has another scheme or contains credentials.
    pub fn parse(url: &str) -> Result<Self, TransportError> {
        let refused = |why: &str| {
            TransportError::unsent(TransportErrorKind::Address(format!("the URL {why}")))
        };
        // Clients do not send the fragment.
        let url = url.split('#').next().unwrap_or(url);
        if !url.is_empty() && !url.contains("://") {
            return Err(refused("must start with http:// or https://"));
        }
        let uri: Uri =
            url.parse().map_err(|_| refused("is malformed; use the form http://host/path"))?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => false,
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            _ => return Err(refused("must start with http:// or https://")),
        };
        let authority = uri.authority().ok_or_else(|| refused("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(refused("contains a user name or password; use a token instead"));
        }
        Ok(Self { uri, is_tls })
    }

    /// Resolves a URL reference against this address.
    ///
    /// # Errors
    ///
    /// Returns an error if the result is on another origin: a server must not redirect its clients
    /// to another host.
    pub fn resolve(&self, reference: &str) -> Result<Self, TransportError> {
        let reference = reference.trim();
        let (origin, path) = (self.origin(), self.uri.path());
        let whole = if reference.contains("://") {
            reference.to_owned()
        } else if reference.starts_with("//") {
            format!("{}:{reference}", if self.is_tls { "https" } else { "http" })
        } else if reference.starts_with('/') {
            format!("{origin}{reference}")
        } else if reference.starts_with('?') {
            format!("{origin}{path}{reference}")
        } else {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{origin}{folder}/{reference}")
        };
        let resolved = Self::parse(&whole)?;
        match resolved.origin() == origin {
            true => Ok(resolved),
            false => Err(TransportError::unsent(TransportErrorKind::Malformed(format!(
                "the server sends its messages to another origin, {}",
                resolved.origin()
            )))),
        }
    }

    /// Returns scheme, host and port. The client caches the era of a server under its origin.
    pub fn origin(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host().to_ascii_lowercase(), self.port())
    }

    /// Returns the URL without its fragment.
    pub fn url(&self) -> String {
        self.uri.to_string()
    }

    /// Returns whether the scheme is `https`.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns the host without the port. An IPv6 address is in brackets.
    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default()
    }

    /// Returns the port, or the default port of the scheme.
    pub fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.is_tls { 443 } else { 80 })
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(super) fn host_header(&self) -> HeaderValue {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        HeaderValue::from_str(authority).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn address_is_split_into_origin_host_and_path() {
        let address = Address::parse("http://LocalHost:8080/mcp?a=1#x").unwrap();
        assert_eq!(address.origin(), "http://localhost:8080");
        assert_eq!(address.url(), "http://LocalHost:8080/mcp?a=1");
        assert_eq!(Address::parse("https://a.b").unwrap().origin(), "https://a.b:443");
        assert_eq!(Address::parse("http://a.b").unwrap().uri().path(), "/");
        assert_eq!(Address::parse("http://[::1]:9/").unwrap().host(), "[::1]");
    }

    #[test]
    fn unusable_address_is_rejected_with_a_reason() {
        for (url, why) in [
            ("ftp://a.b", "must start with http://"),
            ("a.b/mcp", "must start with http://"),
            ("http://user:secret@a.b/", "use a token instead"),
            ("", "is malformed"),
        ] {
            let refused = Address::parse(url).unwrap_err().to_string();
            assert!(refused.contains(why), "{url}: {refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
    }

    // SSE24-07
    #[test]
    fn endpoint_on_another_origin_is_rejected() {
        let base = Address::parse("http://a.b:1/x/sse").unwrap();
        for (reference, url) in [
            ("/messages?s=1", "http://a.b:1/messages?s=1"),
            ("messages", "http://a.b:1/x/messages"),
            ("?s=1", "http://a.b:1/x/sse?s=1"),
            ("http://a.b:1/m", "http://a.b:1/m"),
        ] {
            assert_eq!(base.resolve(reference).unwrap().url(), url);
        }
        for reference in ["http://evil/m", "https://a.b:1/m", "//evil/m", "http://a.b:2/m"] {
            assert!(base.resolve(reference).is_err(), "{reference}");
        }
    }
}

//! Canonical URI of a server, as clients see it.

use std::fmt;

/// Canonical URI of a server, for which clients get tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct ResourceUri {
    whole: String,
    /// Byte offset of the path.
    path: usize,
}

impl ResourceUri {
    /// Parses an `https:` or `http:` URI without a query and a fragment.
    ///
    /// # Errors
    ///
    /// Returns a message that says what is wrong with the URI.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let uri = Self::normal(text).ok_or("the URI must be an `https:` URI with a host")?;
        if text.contains(['?', '#']) {
            return Err("the URI must not have a query or a fragment");
        }
        Ok(uri)
    }

    /// Normalizes a URI as in RFC 3986: lower-case scheme and host, no default port, no query and
    /// no fragment. Proofs are compared in this form.
    pub(super) fn normal(text: &str) -> Option<Self> {
        let text = text.split(['?', '#']).next().unwrap_or(text);
        let (scheme, rest) = text.split_once("://")?;
        let default_port = match scheme {
            _ if scheme.eq_ignore_ascii_case("https") => ":443",
            _ if scheme.eq_ignore_ascii_case("http") => ":80",
            _ => return None,
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // User names and passwords are not allowed in a resource URI.
        let plain = |char: char| char.is_ascii_graphic() && !matches!(char, '"' | '\\' | '<' | '>');
        if authority.is_empty() || authority.contains('@') || !rest.chars().all(plain) {
            return None;
        }
        let authority = authority.strip_suffix(default_port).unwrap_or(authority);
        let origin = format!("{}://{}", scheme, authority).to_ascii_lowercase();
        Some(Self { path: origin.len(), whole: origin + path })
    }

    /// Returns the whole URI.
    pub fn as_str(&self) -> &str {
        &self.whole
    }

    /// Returns scheme, host and port.
    pub fn origin(&self) -> &str {
        &self.whole[..self.path]
    }

    /// Returns the path, which may be empty.
    pub fn path(&self) -> &str {
        &self.whole[self.path..]
    }

    /// Returns whether `text` equals this URI. An empty path equals a slash.
    pub fn is_named_by(&self, text: &str) -> bool {
        let bare = |uri: &Self| matches!(uri.path(), "" | "/");
        text == self.whole || bare(self) && text.strip_suffix('/').unwrap_or(text) == self.origin()
    }
}

impl fmt::Debug for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.whole)
    }
}

#[cfg(test)]
mod tests {
    use super::ResourceUri;

    #[test]
    fn uri_is_normalized_for_comparison() {
        let uri = ResourceUri::normal("HTTPS://Mcp.Example:443/Mcp?a#b").unwrap();
        assert_eq!(uri.as_str(), "https://mcp.example/Mcp");
        assert_eq!((uri.origin(), uri.path()), ("https://mcp.example", "/Mcp"));
        assert_eq!(ResourceUri::normal("http://[::1]:80").unwrap().as_str(), "http://[::1]");
        for odd in ["", "mcp.example", "ftp://a/b", "https:///x", "https://a b", "https://u:p@a/"] {
            assert!(ResourceUri::normal(odd).is_none(), "{odd}");
        }
        assert!(ResourceUri::parse("https://a/b?c").is_err());
    }

    // ARS-04
    #[test]
    fn trailing_slash_is_ignored_only_for_a_root_path() {
        let root = ResourceUri::parse("https://mcp.example").unwrap();
        assert!(
            root.is_named_by("https://mcp.example") && root.is_named_by("https://mcp.example/")
        );
        assert!(
            !root.is_named_by("https://mcp.example//")
                && !root.is_named_by("https://mcp.example/x")
        );
        let path = ResourceUri::parse("https://mcp.example/mcp").unwrap();
        assert!(path.is_named_by("https://mcp.example/mcp"));
        for other in ["https://mcp.example/mcp/", "https://mcp.example", "https://mcp.example/mcp2"]
        {
            assert!(!path.is_named_by(other), "{other}");
        }
    }
}

//! What a server is called by those who want a token for it: one URI, as the outside sees it.

use std::fmt;

/// Canonical URI of a server, for which clients get tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct ResourceUri {
    whole: String,
    /// Where the path begins.
    path: usize,
}

impl ResourceUri {
    /// Parses an `https:` or `http:` URI without a query and a fragment.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with the URI.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let uri = Self::normal(text).ok_or("it must be an `https:` URI with a host")?;
        if text.contains(['?', '#']) {
            return Err("it can have no query and no fragment");
        }
        Ok(uri)
    }

    /// A URI without what RFC 3986 calls equal: capitals in scheme and host, the port that goes
    /// without saying, query and fragment. That is the form in which proofs are compared.
    pub(super) fn normal(text: &str) -> Option<Self> {
        let text = text.split(['?', '#']).next().unwrap_or(text);
        let (scheme, rest) = text.split_once("://")?;
        let default_port = match scheme {
            _ if scheme.eq_ignore_ascii_case("https") => ":443",
            _ if scheme.eq_ignore_ascii_case("http") => ":80",
            _ => return None,
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        // Nobody's name and password belong in the name of a server.
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

    /// Returns whether a text names this server. An empty path and a slash are the same path.
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
    fn equal_uris_are_one() {
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
    fn only_an_empty_path_may_have_a_slash_more_or_less() {
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

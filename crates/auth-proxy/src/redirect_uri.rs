//! Redirect URIs of clients.

use outlive_auth::fetch::is_loopback_host;

/// Maximum length of a redirect URI, which is stored in client IDs and cookies.
const LONGEST: usize = 512;

/// A parsed redirect URI: `https:` to any host, or `http:` to a loopback host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RedirectUri<'a> {
    whole: &'a str,
    host: &'a str,
    /// Path and query.
    rest: &'a str,
    is_tls: bool,
}

impl<'a> RedirectUri<'a> {
    /// Parses a redirect URI. Rejects URIs that browsers might parse differently.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}#".contains(&byte);
        if text.len() > LONGEST || !text.bytes().all(plain) {
            return None;
        }
        let (is_tls, after) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(after), _) => (true, after),
            (_, Some(after)) => (false, after),
            _ => return None,
        };
        let (authority, rest) = after.split_at(after.find(['/', '?']).unwrap_or(after.len()));
        let host = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                port.parse::<u16>().ok().filter(|_| port.bytes().all(|it| it.is_ascii_digit()))?;
                host
            }
            _ => authority,
        };
        let name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let address = |text: &str| text.parse::<std::net::Ipv6Addr>().is_ok();
        let bracketed = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let is_host = !host.is_empty() && host.bytes().all(name) || bracketed.is_some_and(address);
        (is_host && (is_tls || is_loopback_host(host))).then_some(Self {
            whole: text,
            host,
            rest,
            is_tls,
        })
    }

    pub(super) fn as_str(&self) -> &'a str {
        self.whole
    }

    /// Returns whether the URI belongs to a program on the user's machine.
    pub(super) fn is_loopback(&self) -> bool {
        !self.is_tls
    }

    pub(super) fn host(&self) -> &'a str {
        self.host
    }

    /// Returns whether a client that registered this URI may use `asked`. The URIs must be equal,
    /// except for the port of loopback URIs, which may change (RFC 8252 section 7.3).
    pub(super) fn admits(&self, asked: &Self) -> bool {
        let same_program = self.is_loopback() && asked.is_loopback();
        self.whole == asked.whole
            || same_program && (self.host, self.rest) == (asked.host, asked.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::RedirectUri;

    #[test]
    fn redirect_uri_requires_https_or_loopback() {
        for good in [
            "https://app.example/cb",
            "https://app.example:8443/cb?x=1",
            "http://localhost/cb",
            "http://127.0.0.1:1234/cb",
            "http://[::1]:1/",
        ] {
            assert!(RedirectUri::parse(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "http://app.example/cb",
            "http://localhost.evil.example/",
            "http://127.0.0.1@evil.example/",
            "https://user@app.example/",
            "https://app.example/#x",
            "https://app.example\\@evil.example/",
            "https://evil.example\t/",
            "https:///cb",
            "https://",
            "HTTPS://app.example/",
            "//app.example/",
            "javascript:alert(1)",
            "javascript://localhost/%0aalert(1)",
            "cursor://callback",
            "data:text/html,x",
            "https://app.example:99999/",
            "https://app.example:+1/",
            "https://ä.example/",
            "https://app.example/ x",
            "https://app.example/\r\nset-cookie:x",
            &format!("https://app.example/{}", "x".repeat(512)),
        ] {
            assert!(RedirectUri::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn redirect_uri_must_match_except_for_a_loopback_port() {
        let check = |known: &str, asked: &str, expect: bool| {
            let (known, asked) =
                (RedirectUri::parse(known).unwrap(), RedirectUri::parse(asked).unwrap());
            assert_eq!(known.admits(&asked), expect, "{known:?} {asked:?}");
        };
        check("https://a.example/cb", "https://a.example/cb", true);
        for other in ["/cb/", "/cb?x", "/cb/../x", "", "/CB", ":443/cb"] {
            check("https://a.example/cb", &format!("https://a.example{other}"), false);
        }
        check("https://a.example/cb", "https://a.example.evil/cb", false);
        check("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb", true);
        check("http://127.0.0.1/cb", "http://127.0.0.1:2/cb", true);
        check("http://127.0.0.1:1/cb", "http://127.0.0.1:1/cb2", false);
        check("http://127.0.0.1:1/cb", "http://localhost:1/cb", false);
        check("https://localhost:1/cb", "https://localhost:2/cb", false);
        check("http://localhost:1/cb", "https://localhost:1/cb", false);
    }
}

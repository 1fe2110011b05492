//! Cookies of the proxy, which scripts cannot read, other sites do not send, and other hosts cannot
//! set.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

/// Maximum length of a cookie with its name that all browsers accept.
const LONGEST: usize = 4_000;

/// Reads and writes the cookies of the proxy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cookies {
    /// Whether browsers connect over TLS. Without TLS, which is allowed for loopback only, browsers
    /// reject `__Host-` cookies.
    pub(super) is_tls: bool,
}

impl Cookies {
    /// Returns a cookie. A duplicate cookie is ambiguous and returns `None`.
    pub(super) fn get<'a>(&self, headers: &'a HeaderMap, what: &str) -> Option<&'a str> {
        let name = self.name(what);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|one| one.split_once('='));
        let mut found = pairs.filter(|(known, _)| known.trim() == name);
        let first = found.next().map(|(_, value)| value.trim());
        if found.next().is_some() { None } else { first }
    }

    /// Returns the header that sets a cookie, or `None` if the cookie is too long.
    pub(super) fn set(&self, what: &str, value: &str, age: Duration) -> Option<HeaderValue> {
        let name = self.name(what);
        if name.len() + value.len() > LONGEST {
            return None;
        }
        let secure = if self.is_tls { "; Secure" } else { "" };
        let age = age.as_secs();
        let cookie =
            format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::try_from(cookie).ok()
    }

    /// Returns the header that deletes a cookie.
    pub(super) fn unset(&self, what: &str) -> Option<HeaderValue> {
        self.set(what, "", Duration::ZERO)
    }

    fn name(&self, what: &str) -> String {
        let host = if self.is_tls { "__Host-" } else { "" };
        format!("{host}outlive-{what}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue, header};

    use super::Cookies;

    // ARS-21
    #[test]
    fn cookie_is_bound_to_this_host() {
        let cookies = Cookies { is_tls: true };
        let set = cookies.set("login", "v", Duration::from_secs(9)).unwrap();
        let whole = "__Host-outlive-login=v; Path=/; Max-Age=9; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(set, whole);
        assert!(cookies.set("login", &"x".repeat(5_000), Duration::ZERO).is_none());
        let get = |lines: &[&'static str]| {
            let lines = lines.iter().map(|line| (header::COOKIE, HeaderValue::from_static(line)));
            cookies.get(&HeaderMap::from_iter(lines), "login").map(str::to_owned)
        };
        assert_eq!(get(&["a=b; __Host-outlive-login=v"]).as_deref(), Some("v"));
        assert_eq!(get(&["outlive-login=v"]), None);
        assert_eq!(get(&["__Host-outlive-login=v; __Host-outlive-login=w"]), None);
    }
}

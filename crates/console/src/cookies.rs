//! Cookies of the console, which scripts cannot read and other sites do not send.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, header};

/// Name of the session cookie.
pub(crate) const SESSION: &str = "outlive";

/// Name of the cookie of the sign-in page, which prevents that another site signs a browser in.
pub(crate) const SIGN_IN: &str = "outlive-in";

/// Name of the cookie with the theme, which the script of the pages sets.
pub(crate) const THEME: &str = "outlive-theme";

/// Returns a cookie. A duplicate cookie is ambiguous and returns `None`.
pub(crate) fn get<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|one| one.split_once('='));
    let mut found = pairs.filter(|(known, _)| known.trim() == name);
    let first = found.next().map(|(_, value)| value.trim());
    if found.next().is_some() { None } else { first }
}

/// Names and attributes of the cookies of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookies {
    /// Whether browsers connect over TLS. Without TLS, browsers reject `__Host-` cookies.
    pub(crate) is_tls: bool,
}

impl Cookies {
    /// Returns the value of a cookie of the server.
    pub(crate) fn get<'a>(self, headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
        get(headers, &self.name(name)).filter(|value| !value.is_empty())
    }

    /// Returns the header that sets a cookie. The value contains no separators.
    pub(crate) fn set(self, name: &str, value: &str, age: Duration) -> HeaderValue {
        let (name, age) = (self.name(name), age.as_secs());
        let secure = if self.is_tls { "; Secure" } else { "" };
        let cookie =
            format!("{name}={value}; Path=/; Max-Age={age}; HttpOnly; SameSite=Lax{secure}");
        let mut value = HeaderValue::try_from(cookie).expect("values are base64url");
        value.set_sensitive(true);
        value
    }

    /// Returns the header that deletes a cookie.
    pub(crate) fn unset(self, name: &str) -> HeaderValue {
        self.set(name, "", Duration::ZERO)
    }

    fn name(self, name: &str) -> String {
        let host = if self.is_tls { "__Host-" } else { "" };
        format!("{host}{name}")
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue, header};

    use super::{Cookies, SESSION};

    #[test]
    fn session_cookie_over_tls_is_bound_to_its_host() {
        let tls = Cookies { is_tls: true };
        let set = tls.set(SESSION, "v", Duration::from_secs(9));
        let whole = "__Host-outlive=v; Path=/; Max-Age=9; HttpOnly; SameSite=Lax; Secure";
        assert_eq!(set, whole);
        let plain = Cookies { is_tls: false }.set(SESSION, "v", Duration::from_secs(9));
        assert_eq!(plain, "outlive=v; Path=/; Max-Age=9; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn cookie_of_another_name_or_a_duplicate_is_ignored() {
        let get = |lines: &[&'static str]| {
            let lines = lines.iter().map(|line| (header::COOKIE, HeaderValue::from_static(line)));
            let headers = HeaderMap::from_iter(lines);
            Cookies { is_tls: true }.get(&headers, SESSION).map(str::to_owned)
        };
        assert_eq!(get(&["a=b; __Host-outlive=v"]).as_deref(), Some("v"));
        assert_eq!(get(&["outlive=v"]), None);
        assert_eq!(get(&["__Host-outlive=v; __Host-outlive=w"]), None);
        assert_eq!(get(&["__Host-outlive="]), None);
    }
}

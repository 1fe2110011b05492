//! Checks URLs that get tokens.

use http::Uri;

/// Checks the URL under a key. Returns the reason and the remedy of a mistake.
pub(super) fn check_url(key: &str, url: &str, allow_http: bool) -> Result<(), String> {
    let uri: Uri = url.parse().map_err(|_| format!("`{key}` is not a valid URL"))?;
    let host = uri.host().unwrap_or_default();
    if host.is_empty() {
        return Err(format!("`{key}` has no host"));
    }
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if allow_http || is_loopback(host) => Ok(()),
        Some("http") => {
            Err("`http:` to another machine sends tokens in clear text; write `allow_http = true`"
                .to_owned())
        }
        _ => Err(format!("`{key}` must start with `https:` or `http:`")),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

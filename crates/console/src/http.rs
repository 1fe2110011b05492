//! Responses with their headers, and the check that a request comes from a page of the console.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use outlive::server::http::{EventSource, RouteBody};
use serde::Serialize;

use crate::request::ConsoleRequest;

/// A response of the console.
pub(crate) type Reply = Response<RouteBody>;

/// Policy of all pages: their own scripts, styles and images, and nothing of another origin.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; \
    require-trusted-types-for 'script'";

const NO_STORE: &str = "no-store";
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Returns a page.
pub(crate) fn page(status: StatusCode, html: impl Into<Bytes>) -> Reply {
    let body: Bytes = html.into();
    reply(status, "text/html; charset=utf-8", NO_STORE, body.into())
}

/// Returns a JSON document.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(value).unwrap_or_default();
    reply(status, "application/json", NO_STORE, Bytes::from(body).into())
}

/// Returns one JSON document per line, as a file to save.
pub(crate) fn json_lines(lines: String, name: &'static str) -> Reply {
    let mut reply = reply(StatusCode::OK, "application/jsonl", NO_STORE, Bytes::from(lines).into());
    let disposition = HeaderValue::try_from(format!("attachment; filename=\"{name}\""));
    if let Ok(disposition) = disposition {
        reply.headers_mut().insert(header::CONTENT_DISPOSITION, disposition);
    }
    reply
}

/// Returns an asset. Its path contains its hash, so browsers never ask for it again.
pub(crate) fn asset(content_type: &'static str, body: &'static [u8]) -> Reply {
    reply(StatusCode::OK, content_type, IMMUTABLE, Bytes::from_static(body).into())
}

/// Returns an event stream.
pub(crate) fn events(source: impl EventSource) -> Reply {
    let body = RouteBody::events(source);
    let mut reply = reply(StatusCode::OK, "text/event-stream", NO_STORE, body);
    reply.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    reply
}

/// Redirects the browser with a GET to an address, which is relative to the request or absolute.
pub(crate) fn redirect(to: &str) -> Reply {
    let Ok(location) = HeaderValue::try_from(to) else {
        return page(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new());
    };
    let mut reply = page(StatusCode::SEE_OTHER, Bytes::new());
    reply.headers_mut().insert(header::LOCATION, location);
    reply
}

/// Adds the time after which the client may retry.
pub(crate) fn retry_after(mut reply: Reply, after: std::time::Duration) -> Reply {
    let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
    reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    reply
}

fn reply(
    status: StatusCode,
    content_type: &'static str,
    cache: &'static str,
    body: RouteBody,
) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    set_headers(reply.headers_mut(), content_type, cache);
    reply
}

fn set_headers(headers: &mut HeaderMap, content_type: &'static str, cache: &'static str) {
    let fixed: [(HeaderName, &'static str); 9] = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("x-robots-tag"), "noindex, nofollow"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Returns whether a browser sends the request from a page of this origin: `Sec-Fetch-Site` says
/// so, or, in a browser without that header, `Origin` is the origin of the server.
pub(crate) fn is_same_origin(request: &ConsoleRequest, public_url: Option<&str>) -> bool {
    let headers = request.headers();
    if let Some(site) = headers.get("sec-fetch-site") {
        return site == "same-origin";
    }
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let (Some(origin), None) = (origins.next(), origins.next()) else { return false };
    let Ok(origin) = origin.to_str() else { return false };
    let host = origin.split_once("://").map(|(_, host)| host);
    let is_host = host.is_some() && host == request.host();
    is_host || public_url.is_some_and(|url| origin.eq_ignore_ascii_case(origin_of(url)))
}

/// Returns scheme, host and port of a URL.
fn origin_of(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    &url[..end]
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;

    use super::{is_same_origin, origin_of};
    use crate::request::ConsoleRequest;

    fn check(headers: &[(&str, &str)], expected: bool) {
        let mut request = Request::builder().header("host", "ops.example.com");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Bytes::new()).expect("is a request");
        let request = ConsoleRequest::new(request, String::new());
        let same = is_same_origin(&request, Some("https://people.example.com/outlive"));
        assert_eq!(same, expected, "{headers:?}");
    }

    #[test]
    fn request_of_another_origin_is_recognized() {
        check(&[("sec-fetch-site", "same-origin")], true);
        for site in ["same-site", "cross-site", "none", ""] {
            check(&[("sec-fetch-site", site), ("origin", "https://ops.example.com")], false);
        }
        check(&[("origin", "https://ops.example.com")], true);
        check(&[("origin", "https://people.example.com")], true);
        for origin in ["https://evil.example", "null", "https://ops.example.com.evil.example"] {
            check(&[("origin", origin)], false);
        }
        check(&[], false);
        check(&[("origin", "https://ops.example.com"), ("origin", "https://evil.example")], false);
    }

    #[test]
    fn origin_of_a_url_has_no_path() {
        assert_eq!(origin_of("https://a.b:1/c?d"), "https://a.b:1");
        assert_eq!(origin_of("https://a.b"), "https://a.b");
    }
}

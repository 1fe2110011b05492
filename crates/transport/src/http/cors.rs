//! CORS: lets web pages of permitted origins use the server.

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::Body;

/// Headers that a web page may send, besides `Mcp-Param-*`, whose names depend on the tools.
const SENDS: [&str; 10] = [
    "accept",
    "authorization",
    "content-type",
    "dpop",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "x-requested-with",
];
const READS: HeaderValue =
    HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate, DPoP-Nonce, Retry-After");
const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, DELETE");
const A_DAY: HeaderValue = HeaderValue::from_static("86400");

/// Answers a CORS preflight request. The caller has checked the origin.
pub(super) fn preflight(request: &HeaderMap) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, A_DAY);
    let wanted =
        request.get(header::ACCESS_CONTROL_REQUEST_HEADERS).and_then(|value| value.to_str().ok());
    let allowed = |name: &&str| {
        let name = name.to_ascii_lowercase();
        SENDS.contains(&name.as_str()) || name.starts_with("mcp-param-")
    };
    let granted: Vec<&str> =
        wanted.unwrap_or_default().split(',').map(str::trim).filter(allowed).collect();
    if let Ok(granted) = HeaderValue::from_str(&granted.join(", ")) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, granted);
    }
    response
}

/// Permits the web page to read the response.
pub(super) fn allow(origin: HeaderValue, response: &mut HeaderMap) {
    response.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    response.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, READS);
    response.append(header::VARY, HeaderValue::from_static("Origin"));
}

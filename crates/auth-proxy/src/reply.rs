//! Responses with JSON and CORS headers.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde::Serialize;

use super::login_store::LoginStoreError;

/// A complete response.
pub(super) type Reply = Response<Bytes>;

/// An OAuth error, with the codes of RFC 6749, 7009, 7591 and 8707.
#[derive(Clone, Copy, Debug)]
pub(super) struct ErrorReply {
    pub(super) code: &'static str,
    pub(super) description: &'static str,
}

impl ErrorReply {
    /// The code or refresh token cannot be used.
    pub(super) const USED: Self = Self::new(
        "invalid_grant",
        "the code or token is unknown, expired, revoked, already used, or of another client",
    );

    pub(super) const fn new(code: &'static str, description: &'static str) -> Self {
        Self { code, description }
    }

    /// The proxy or the provider is temporarily unavailable.
    pub(super) const UNAVAILABLE: Self =
        Self::new("temporarily_unavailable", "the server is temporarily unavailable; retry later");

    /// Returns the error as a response.
    pub(super) fn reply(self) -> Reply {
        #[derive(Serialize)]
        struct Written {
            error: &'static str,
            error_description: &'static str,
        }
        let status = match self.code {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "temporarily_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        let Self { code: error, description: error_description } = self;
        json(status, &Written { error, error_description })
    }
}

impl From<LoginStoreError> for ErrorReply {
    fn from(error: LoginStoreError) -> Self {
        tracing::warn!(%error, "the login store failed");
        Self::UNAVAILABLE
    }
}

/// Returns a JSON response that must not be cached.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut reply = document(Bytes::from(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// Returns a cacheable JSON response.
pub(super) fn document(body: Bytes) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    reply
}

/// Permits web pages of any origin to read a response. The response does not depend on cookies, so
/// it discloses nothing else.
pub(super) fn for_any_origin(mut reply: Reply) -> Reply {
    let any = HeaderValue::from_static("*");
    reply.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    reply
}

/// Answers a CORS preflight request.
pub(super) fn preflight() -> Reply {
    let mut reply = empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    let methods = HeaderValue::from_static("GET, POST");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    reply
}

/// Returns a 405 response.
pub(super) fn method_not_allowed(allowed: &Method) -> Reply {
    let mut reply = empty(StatusCode::METHOD_NOT_ALLOWED);
    if let Ok(allowed) = HeaderValue::from_str(allowed.as_str()) {
        reply.headers_mut().insert(header::ALLOW, allowed);
    }
    reply
}

pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Bytes::new());
    *reply.status_mut() = status;
    reply
}

/// Sets headers of all responses to browsers: no caching, no referrer, no sniffing.
pub(super) fn guard(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

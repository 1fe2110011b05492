//! Whole answers: JSON for clients, pages and redirects for browsers.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde::Serialize;

use super::login_store::LoginStoreError;

/// An answer.
pub(super) type Reply = Response<Bytes>;

/// What a client did wrong, in the words of RFC 6749, 7009, 7591 and 8707.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) error: &'static str,
    pub(super) description: &'static str,
}

impl Fault {
    /// The code or refresh token cannot be used.
    pub(super) const USED: Self =
        Self::new("invalid_grant", "it is unknown, expired, revoked or used, or not this client's");

    pub(super) const fn new(error: &'static str, description: &'static str) -> Self {
        Self { error, description }
    }

    /// Something here, or with the provider, that may well work later.
    pub(super) const UNAVAILABLE: Self =
        Self::new("temporarily_unavailable", "this cannot be done at the moment; try again later");

    /// As the body of an answer.
    pub(super) fn reply(self) -> Reply {
        #[derive(Serialize)]
        struct Written {
            error: &'static str,
            error_description: &'static str,
        }
        let status = match self.error {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "temporarily_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        let Self { error, description: error_description } = self;
        json(status, &Written { error, error_description })
    }
}

impl From<LoginStoreError> for Fault {
    fn from(error: LoginStoreError) -> Self {
        tracing::warn!(%error, "the proxy could not do what it was asked");
        Self::UNAVAILABLE
    }
}

/// JSON that nobody keeps: it has tokens, or depends on who asks.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut reply = document(Bytes::from(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// JSON that is the same for everybody.
pub(super) fn document(body: Bytes) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    reply
}

/// Lets web pages of any origin read an answer. No cookie plays a part in it, so they learn nothing
/// that any program could not.
pub(super) fn for_any_origin(mut reply: Reply) -> Reply {
    let any = HeaderValue::from_static("*");
    reply.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    reply
}

/// Answers the question whether a page may send a request.
pub(super) fn preflight() -> Reply {
    let mut reply = empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    let methods = HeaderValue::from_static("GET, POST");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    reply
}

/// A method that a path does not have.
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

/// What holds for all that browsers see: nobody keeps it, and nobody is told where it came from.
pub(super) fn guard(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

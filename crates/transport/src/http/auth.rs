//! Authentication of HTTP requests.
//!
//! Each request is authenticated by itself: a connection or a session carries no identity. Handlers
//! do not see the credentials.

use std::{borrow::Cow, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts};
use outlive_protocol::{Principal, Scopes};

/// Header with the proof that the client has the key of its token (RFC 9449).
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// Authenticates requests.
pub trait Authenticator: Send + Sync + 'static {
    /// Authenticates a request by its head.
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a>;

    /// Returns the public JSON document at `path`, for clients that do not have a token yet. Called
    /// only for paths below `/.well-known/`.
    fn document(&self, path: &str) -> Option<Bytes> {
        let _ = path;
        None
    }

    /// Returns the `WWW-Authenticate` values for a principal that lacks some of the `needed`
    /// scopes.
    fn missing_scopes(&self, principal: &Principal, needed: &Scopes) -> Vec<HeaderValue> {
        let _ = principal;
        let challenge = format!(r#"Bearer error="insufficient_scope", scope="{needed}""#);
        HeaderValue::try_from(challenge).into_iter().collect()
    }
}

impl<A: Authenticator + ?Sized> Authenticator for Arc<A> {
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a> {
        (**self).authenticate(parts)
    }

    fn document(&self, path: &str) -> Option<Bytes> {
        (**self).document(path)
    }

    fn missing_scopes(&self, principal: &Principal, needed: &Scopes) -> Vec<HeaderValue> {
        (**self).missing_scopes(principal, needed)
    }
}

/// Result of an authentication, immediate or asynchronous. An immediate result needs no allocation.
#[expect(clippy::exhaustive_enums, reason = "a decision is immediate or asynchronous")]
pub enum AuthDecision<'a> {
    /// The result is available.
    Now(Result<Principal, AuthRejection>),
    /// The result needs an asynchronous lookup.
    Later(Pin<Box<dyn Future<Output = Result<Principal, AuthRejection>> + Send + 'a>>),
}

impl fmt::Debug for AuthDecision<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(result) => f.debug_tuple("Now").field(result).finish(),
            Self::Later(_) => f.write_str("Later(…)"),
        }
    }
}

/// Rejection of a request. The message tells the client what to do and discloses nothing else.
// Boxed to keep `AuthDecision` small: most requests are accepted.
#[derive(Clone, Debug)]
pub struct AuthRejection(Box<RejectionParts>);

#[derive(Clone, Debug)]
struct RejectionParts {
    status: StatusCode,
    message: Cow<'static, str>,
    headers: HeaderMap,
}

impl AuthRejection {
    /// Creates a 400 response: the credentials are malformed.
    pub fn malformed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message.into())
    }

    /// Creates a 401 response: the credentials are missing or invalid. `challenge` is the value of
    /// `WWW-Authenticate`.
    pub fn unauthenticated(challenge: HeaderValue) -> Self {
        let message = "send a valid token in the Authorization header";
        Self::new(StatusCode::UNAUTHORIZED, message.into()).with_challenge(challenge)
    }

    /// Creates a 403 response: the principal is not permitted.
    pub fn forbidden() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "this principal is not permitted to send this request".into(),
        )
    }

    /// Creates a 429 response: the caller exceeds a rate limit.
    pub fn rate_limited(retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too many requests".into()).retry(retry_after)
    }

    /// Creates a 503 response: the credentials cannot be checked at the moment.
    pub fn unavailable(retry_after: Duration) -> Self {
        let message = "the credentials cannot be checked at the moment; retry later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message.into()).retry(retry_after)
    }

    /// Creates a 401 response with a bearer challenge, for requests without a token.
    pub fn no_token() -> Self {
        Self::unauthenticated(HeaderValue::from_static("Bearer"))
    }

    /// Creates a 401 response with a bearer challenge, for tokens that are unknown or no longer
    /// valid.
    pub fn invalid_token() -> Self {
        Self::unauthenticated(HeaderValue::from_static(r#"Bearer error="invalid_token""#))
    }

    /// Creates a 401 response with a bearer challenge, for a deciding credential at the MCP endpoint.
    pub(crate) fn deciding_credential() -> Self {
        let message = "this token decides in the console and is not valid here; send an MCP token";
        Self::new(StatusCode::UNAUTHORIZED, message.into())
            .with_challenge(HeaderValue::from_static(r#"Bearer error="invalid_token""#))
    }

    /// Adds a `WWW-Authenticate` header.
    #[must_use]
    pub fn with_challenge(self, challenge: HeaderValue) -> Self {
        self.with_header(header::WWW_AUTHENTICATE, challenge)
    }

    /// Adds a header to the response.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.append(name, value);
        self
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// Returns the headers of the response.
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// Returns the message of the response.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    fn new(status: StatusCode, message: Cow<'static, str>) -> Self {
        Self(Box::new(RejectionParts { status, message, headers: HeaderMap::new() }))
    }

    fn retry(self, after: Duration) -> Self {
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.with_header(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }
}

/// Returns the token of `Authorization: Bearer …`, if the request has exactly one such header.
pub(crate) fn bearer(parts: &Parts) -> Option<&[u8]> {
    let mut values = parts.headers.get_all(http::header::AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

//! Who is calling, judged by the request alone. Every request is judged; nothing is inherited
//! from a connection or a session. What the caller has shown goes no further than this: handlers
//! see the request without it.

use std::{borrow::Cow, fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header, request::Parts};
use outlive_protocol::{Principal, Scopes};

/// The header in which callers prove that they have the key of their token (RFC 9449).
pub(super) const DPOP: HeaderName = HeaderName::from_static("dpop");

/// Names the caller of a request, or refuses it.
pub trait Authenticator: Send + Sync + 'static {
    /// Judges a request by its head.
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> AuthDecision<'a>;

    /// A JSON document that anybody may read at this path, for those who have yet to find out how
    /// to be let in. Asked about paths below `/.well-known/` only.
    fn document(&self, path: &str) -> Option<Bytes> {
        let _ = path;
        None
    }

    /// What a caller is told who needs all of these scopes and does not have them: values of
    /// `WWW-Authenticate`.
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

/// The judgement, now or later. Most need no waiting, and then none is paid for.
#[expect(clippy::exhaustive_enums, reason = "now or later")]
pub enum AuthDecision<'a> {
    /// It is known.
    Now(Result<Principal, AuthRejection>),
    /// Somebody else has to be asked.
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

/// Why a request was not let in. Tells the caller what to do and an attacker nothing.
// Boxed, so that a verdict is small: most let somebody in.
#[derive(Clone, Debug)]
pub struct AuthRejection(Box<Refusal>);

#[derive(Clone, Debug)]
struct Refusal {
    status: StatusCode,
    message: Cow<'static, str>,
    headers: HeaderMap,
}

impl AuthRejection {
    /// 400: what should name the caller cannot be understood.
    pub fn malformed(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message.into())
    }

    /// 401: there is no valid credential. The value becomes `WWW-Authenticate`.
    pub fn unauthenticated(challenge: HeaderValue) -> Self {
        let message = "send a valid token in the Authorization header";
        Self::new(StatusCode::UNAUTHORIZED, message.into()).with_challenge(challenge)
    }

    /// 403: the caller is known, and may not.
    pub fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, "this caller may not do that".into())
    }

    /// 429: the caller does that too often.
    pub fn rate_limited(retry_after: Duration) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too many requests".into()).retry(retry_after)
    }

    /// 503: whoever knows the caller cannot be asked. That says nothing about the credential.
    pub fn unavailable(retry_after: Duration) -> Self {
        let message = "callers cannot be told apart at the moment; try again later";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message.into()).retry(retry_after)
    }

    /// 401 with a bearer challenge, for requests without a token.
    pub fn no_token() -> Self {
        Self::unauthenticated(HeaderValue::from_static("Bearer"))
    }

    /// 401 with a bearer challenge, for tokens that are unknown or no longer valid.
    pub fn invalid_token() -> Self {
        Self::unauthenticated(HeaderValue::from_static(r#"Bearer error="invalid_token""#))
    }

    /// Adds a `WWW-Authenticate`: one more way to be let in.
    #[must_use]
    pub fn with_challenge(self, challenge: HeaderValue) -> Self {
        self.with_header(header::WWW_AUTHENTICATE, challenge)
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.headers.append(name, value);
        self
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        self.0.status
    }

    /// The headers of the answer.
    pub fn headers(&self) -> &HeaderMap {
        &self.0.headers
    }

    /// What the answer says.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    fn new(status: StatusCode, message: Cow<'static, str>) -> Self {
        Self(Box::new(Refusal { status, message, headers: HeaderMap::new() }))
    }

    fn retry(self, after: Duration) -> Self {
        let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
        self.with_header(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)))
    }
}

/// The token of `Authorization: Bearer …`, if there is exactly one such header.
pub(crate) fn bearer(parts: &Parts) -> Option<&[u8]> {
    let mut values = parts.headers.get_all(http::header::AUTHORIZATION).iter();
    let value = values.next()?.as_bytes();
    if values.next().is_some() {
        return None;
    }
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

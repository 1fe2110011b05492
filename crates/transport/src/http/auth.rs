//! Who is calling, judged by the request alone. Every request is judged; nothing is inherited
//! from a connection or a session.

use std::{future::Future, pin::Pin};

use http::{HeaderValue, request::Parts};
use outlive_protocol::Principal;

/// Names the caller of a request, or refuses it.
pub trait Authenticator: Send + Sync + 'static {
    /// Judges a request by its head.
    fn authenticate<'a>(&'a self, parts: &'a Parts) -> Verdict<'a>;
}

/// The judgement, now or later. Most need no waiting, and then none is paid for.
#[expect(clippy::exhaustive_enums, reason = "now or later")]
pub enum Verdict<'a> {
    /// It is known.
    Now(Result<Principal, Denied>),
    /// Somebody else has to be asked.
    Later(Pin<Box<dyn Future<Output = Result<Principal, Denied>> + Send + 'a>>),
}

impl std::fmt::Debug for Verdict<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now(result) => f.debug_tuple("Now").field(result).finish(),
            Self::Later(_) => f.write_str("Later(…)"),
        }
    }
}

/// Why a request was not let in. Tells the caller what to do and an attacker nothing.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Denied {
    /// 401: there is no valid credential. The value becomes `WWW-Authenticate`.
    Unauthenticated {
        /// How to authenticate.
        challenge: HeaderValue,
    },
    /// 403: the caller is known, and may not.
    Forbidden {
        /// What is missing, if it can be got.
        challenge: Option<HeaderValue>,
    },
}

impl Denied {
    /// 401 with a bearer challenge, for requests without a token.
    pub fn no_token() -> Self {
        Self::Unauthenticated { challenge: HeaderValue::from_static("Bearer") }
    }

    /// 401 with a bearer challenge, for tokens that are unknown or no longer valid.
    pub fn invalid_token() -> Self {
        Self::Unauthenticated {
            challenge: HeaderValue::from_static(r#"Bearer error="invalid_token""#),
        }
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

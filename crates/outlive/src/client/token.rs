//! Where bearer tokens come from.

use std::{fmt, future::Future, pin::Pin};

/// Gives the token that goes with each HTTP request.
///
/// A token of your own choosing is [`StaticToken`]; whoever fetches and renews tokens implements
/// this, and is told what a server said when it refused one.
pub trait TokenSource: Send + Sync + 'static {
    /// The token to use now; `None` to go without. After a server has answered 401 it is asked once
    /// more, with the challenge that came with it.
    fn token(&self, refused: Option<Challenge>) -> impl Future<Output = Option<String>> + Send;
}

/// What a server said when it refused a token: its `WWW-Authenticate` header.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Challenge {
    /// The header as it came; empty if there was none.
    pub header: String,
}

impl Challenge {
    pub(crate) fn new(header: impl Into<String>) -> Self {
        Self { header: header.into() }
    }
}

/// One token, always the same.
#[derive(Clone)]
pub struct StaticToken(String);

impl StaticToken {
    /// The token, without `Bearer`.
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }
}

impl fmt::Debug for StaticToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StaticToken(…)")
    }
}

impl TokenSource for StaticToken {
    async fn token(&self, refused: Option<Challenge>) -> Option<String> {
        // There is no other, and sending it again would only be refused again.
        refused.is_none().then(|| self.0.clone())
    }
}

/// [`TokenSource`] behind a pointer.
pub(crate) trait DynTokenSource: Send + Sync {
    fn token(
        &self,
        refused: Option<Challenge>,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>>;
}

impl<T: TokenSource> DynTokenSource for T {
    fn token(
        &self,
        refused: Option<Challenge>,
    ) -> Pin<Box<dyn Future<Output = Option<String>> + Send + '_>> {
        Box::pin(TokenSource::token(self, refused))
    }
}

//! Sources of the access tokens of HTTP requests.

use std::{
    error::Error,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use tokio::time::Instant;

use super::{Challenge, SecretString};

/// Header with the proof that the client has the key of its token (RFC 9449).
const DPOP: HeaderName = HeaderName::from_static("dpop");
/// Header with the nonce that the next DPoP proof must contain.
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Source of the access token for each HTTP request.
///
/// [`StaticToken`] always returns the same token. Implement this trait to fetch and refresh tokens.
/// [`answered`](Self::answered) reports how the server responds to a token.
pub trait TokenSource: Send + Sync + 'static {
    /// Returns the token for a request, or `None` to send the request without a token.
    fn token(
        &self,
        request: &TokenRequest<'_>,
    ) -> impl Future<Output = Result<Option<Token>, TokenError>> + Send;

    /// Handles a response that concerns tokens: 401, 403, or a response with `DPoP-Nonce`.
    ///
    /// Returns `true` to retry a rejected request with the token that [`token`](Self::token)
    /// returns next. The request timeout is paused while this future runs, because it may wait for
    /// a user to log in.
    fn answered(
        &self,
        answer: &TokenResponse<'_>,
    ) -> impl Future<Output = Result<bool, TokenError>> + Send {
        let _ = answer;
        async { Ok(false) }
    }
}

/// A request that needs a token.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TokenRequest<'a> {
    /// HTTP method.
    pub method: &'a Method,
    /// URL, including the query.
    pub url: &'a str,
}

impl<'a> TokenRequest<'a> {
    /// Creates a request.
    pub fn new(method: &'a Method, url: &'a str) -> Self {
        Self { method, url }
    }
}

/// Response of a server to a request with a token.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TokenResponse<'a> {
    /// The request.
    pub request: TokenRequest<'a>,
    /// Token of the request.
    pub token: Option<&'a Token>,
    /// Number of times the request has been sent, including this attempt.
    pub attempt: u32,
    /// HTTP status of the response.
    pub status: StatusCode,
    /// Headers of the response.
    pub headers: &'a HeaderMap,
}

impl<'a> TokenResponse<'a> {
    /// Creates the response to one attempt of a request.
    pub fn new(
        request: TokenRequest<'a>,
        token: Option<&'a Token>,
        attempt: u32,
        status: StatusCode,
        headers: &'a HeaderMap,
    ) -> Self {
        Self { request, token, attempt, status, headers }
    }

    /// Returns the challenges in `WWW-Authenticate`.
    pub fn challenges(&self) -> Vec<Challenge> {
        Challenge::read(self.headers)
    }

    /// Returns the nonce for the next DPoP proof.
    pub fn dpop_nonce(&self) -> Option<&str> {
        self.headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok())
    }
}

/// An access token for one request.
#[derive(Clone, Debug)]
pub struct Token {
    value: SecretString,
    /// DPoP proof for this request, if the token is bound to a key.
    proof: Option<SecretString>,
}

impl Token {
    /// Creates a bearer token.
    pub fn bearer(value: impl Into<SecretString>) -> Self {
        Self { value: value.into(), proof: None }
    }

    /// Creates a DPoP token with the proof for one request.
    pub fn dpop(value: impl Into<SecretString>, proof: impl Into<SecretString>) -> Self {
        Self { value: value.into(), proof: Some(proof.into()) }
    }

    /// Returns the value of the token.
    pub fn value(&self) -> &SecretString {
        &self.value
    }

    /// Adds the token to the headers of a request.
    fn put(&self, headers: &mut HeaderMap) -> Result<(), TokenError> {
        let scheme = if self.proof.is_some() { "DPoP" } else { "Bearer" };
        let authorization = format!("{scheme} {}", self.value.expose());
        headers.insert(header::AUTHORIZATION, sensitive(&authorization)?);
        if let Some(proof) = &self.proof {
            headers.insert(DPOP, sensitive(proof.expose())?);
        }
        Ok(())
    }
}

fn sensitive(value: &str) -> Result<HeaderValue, TokenError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| {
        TokenError::new("the token has characters that are not allowed in a header")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token source that always returns the same token.
#[derive(Clone, Debug)]
pub struct StaticToken(SecretString);

impl StaticToken {
    /// Creates a source from a token, given without `Bearer`.
    pub fn new(token: impl Into<SecretString>) -> Self {
        Self(token.into())
    }
}

impl TokenSource for StaticToken {
    async fn token(&self, _: &TokenRequest<'_>) -> Result<Option<Token>, TokenError> {
        Ok(Some(Token::bearer(self.0.clone())))
    }
}

/// Error of a token source. Its text says what to do.
#[derive(Clone, Debug)]
pub struct TokenError(Arc<dyn Error + Send + Sync>);

impl TokenError {
    /// Creates an error from another error or from a text.
    pub fn new(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(why.into()))
    }

    /// Returns the error of the token source if it has type `E`.
    pub fn downcast_ref<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for TokenError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source()
    }
}

impl PartialEq for TokenError {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TokenError {}

/// A shared [`TokenSource`]. Clones use the same source.
#[derive(Clone)]
pub struct Tokens {
    source: Arc<dyn DynTokenSource>,
    // A std mutex: no code awaits while it is held.
    refused: Arc<Mutex<Refused>>,
}

/// Rejected requests that the source is handling, and the time when it finished the last one.
#[derive(Default)]
struct Refused {
    open: usize,
    last: Option<Instant>,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens")
    }
}

impl Tokens {
    /// Wraps a token source.
    pub fn new(source: impl TokenSource) -> Self {
        Self { source: Arc::new(source), refused: Arc::default() }
    }

    /// Returns the token for a request.
    ///
    /// # Errors
    ///
    /// Returns the error of the token source.
    pub async fn token(&self, request: &TokenRequest<'_>) -> Result<Option<Token>, TokenError> {
        self.source.token(request).await
    }

    /// Returns the extended deadline of a request whose timeout is `span`.
    ///
    /// Time during which the source handles a rejected request does not count toward the timeout.
    /// Returns `None` if the request gets no extra time.
    pub fn more_time(&self, span: Duration) -> Option<Instant> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let from = if refused.open > 0 { Some(now) } else { refused.last };
        from.map(|from| from + span).filter(|until| *until > now)
    }

    /// Adds the token of a request to its headers, and returns the token.
    ///
    /// # Errors
    ///
    /// Returns an error if the source has no token.
    pub async fn authorize(
        &self,
        request: &TokenRequest<'_>,
        headers: &mut HeaderMap,
    ) -> Result<Option<Token>, TokenError> {
        let token = self.token(request).await?;
        if let Some(token) = &token {
            token.put(headers)?;
        }
        Ok(token)
    }

    /// Passes a response that concerns tokens to the source. Returns whether to retry the request.
    ///
    /// # Errors
    ///
    /// Returns an error if the source cannot get another token.
    pub async fn answered(&self, answer: &TokenResponse<'_>) -> Result<bool, TokenError> {
        let is_refused = matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if !is_refused && !answer.headers.contains_key(DPOP_NONCE) {
            return Ok(false);
        }
        let _dealing = is_refused.then(|| Dealing::begin(&self.refused));
        Ok(self.source.answered(answer).await? && is_refused)
    }
}

/// Guard that counts a rejected request while the source handles it.
struct Dealing<'a>(&'a Mutex<Refused>);

impl<'a> Dealing<'a> {
    fn begin(refused: &'a Mutex<Refused>) -> Self {
        refused.lock().unwrap_or_else(PoisonError::into_inner).open += 1;
        Self(refused)
    }
}

impl Drop for Dealing<'_> {
    fn drop(&mut self) {
        let mut refused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        refused.open -= 1;
        refused.last = Some(Instant::now());
    }
}

type Waiting<'a, T> = Pin<Box<dyn Future<Output = Result<T, TokenError>> + Send + 'a>>;

/// Object-safe form of [`TokenSource`].
trait DynTokenSource: Send + Sync {
    fn token<'a>(&'a self, request: &'a TokenRequest<'_>) -> Waiting<'a, Option<Token>>;
    fn answered<'a>(&'a self, answer: &'a TokenResponse<'_>) -> Waiting<'a, bool>;
}

impl<T: TokenSource> DynTokenSource for T {
    fn token<'a>(&'a self, request: &'a TokenRequest<'_>) -> Waiting<'a, Option<Token>> {
        Box::pin(TokenSource::token(self, request))
    }

    fn answered<'a>(&'a self, answer: &'a TokenResponse<'_>) -> Waiting<'a, bool> {
        Box::pin(TokenSource::answered(self, answer))
    }
}

//! Where the tokens of HTTP requests come from.

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

/// The header of a proof that a token is with its owner (RFC 9449).
const DPOP: HeaderName = HeaderName::from_static("dpop");
/// What the next proof has to hold.
const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// Gives the token that goes with each HTTP request.
///
/// A token of your own choosing is [`StaticToken`]. Whoever fetches and renews tokens implements
/// this, and hears what a server says about the ones it has given.
pub trait TokenSource: Send + Sync + 'static {
    /// The token for a request; `None` to go without.
    fn token(
        &self,
        request: &TokenRequest<'_>,
    ) -> impl Future<Output = Result<Option<Token>, TokenError>> + Send;

    /// Hears of an answer that is about tokens: 401, 403, or one with a `DPoP-Nonce`. `true` has a
    /// request that was refused sent again, with the token that [`token`](Self::token) gives then.
    /// While this takes time, somebody logging in perhaps, the request's own time stands still.
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
    /// Its method.
    pub method: &'a Method,
    /// Where it goes, query included.
    pub url: &'a str,
}

impl<'a> TokenRequest<'a> {
    /// A request.
    pub fn new(method: &'a Method, url: &'a str) -> Self {
        Self { method, url }
    }
}

/// What a server said about a token.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TokenResponse<'a> {
    /// What was sent.
    pub request: TokenRequest<'a>,
    /// With which token.
    pub token: Option<&'a Token>,
    /// How often it has been sent by now, this time included.
    pub attempt: u32,
    /// The status that came back.
    pub status: StatusCode,
    /// The headers that came back.
    pub headers: &'a HeaderMap,
}

impl TokenResponse<'_> {
    /// What `WWW-Authenticate` says.
    pub fn challenges(&self) -> Vec<Challenge> {
        Challenge::read(self.headers)
    }

    /// What the next proof has to hold.
    pub fn dpop_nonce(&self) -> Option<&str> {
        self.headers.get(DPOP_NONCE).and_then(|nonce| nonce.to_str().ok())
    }
}

/// A token as it goes with a request.
#[derive(Clone, Debug)]
pub struct Token {
    value: SecretString,
    /// The proof of this one request, for tokens that are bound to a key.
    proof: Option<SecretString>,
}

impl Token {
    /// A token that works for whoever has it.
    pub fn bearer(value: impl Into<SecretString>) -> Self {
        Self { value: value.into(), proof: None }
    }

    /// A token that works with a proof, made for this one request.
    pub fn dpop(value: impl Into<SecretString>, proof: impl Into<SecretString>) -> Self {
        Self { value: value.into(), proof: Some(proof.into()) }
    }

    /// The token itself.
    pub fn value(&self) -> &SecretString {
        &self.value
    }

    /// Puts it into the headers of a request.
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
    let mut value = HeaderValue::try_from(value)
        .map_err(|_| TokenError::new("the token has characters that no header can hold"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// One token, always the same.
#[derive(Clone, Debug)]
pub struct StaticToken(SecretString);

impl StaticToken {
    /// The token, without `Bearer`.
    pub fn new(token: impl Into<SecretString>) -> Self {
        Self(token.into())
    }
}

impl TokenSource for StaticToken {
    async fn token(&self, _: &TokenRequest<'_>) -> Result<Option<Token>, TokenError> {
        Ok(Some(Token::bearer(self.0.clone())))
    }
}

/// Why there is no token. Its text says what to do.
#[derive(Clone, Debug)]
pub struct TokenError(Arc<dyn Error + Send + Sync>);

impl TokenError {
    /// An error, or its text.
    pub fn new(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(Arc::from(why.into()))
    }

    /// The error of the source that failed, if it is of this type.
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

/// A [`TokenSource`] that clones share.
#[derive(Clone)]
pub struct Tokens {
    source: Arc<dyn DynTokenSource>,
    // A std mutex: nothing awaits while it is held.
    refused: Arc<Mutex<Refused>>,
}

/// Refusals that the source is dealing with, and when the last one was dealt with.
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
    /// Shares a source.
    pub fn new(source: impl TokenSource) -> Self {
        Self { source: Arc::new(source), refused: Arc::default() }
    }

    /// The token for a request.
    ///
    /// # Errors
    ///
    /// Those of the source.
    pub async fn token(&self, request: &TokenRequest<'_>) -> Result<Option<Token>, TokenError> {
        self.source.token(request).await
    }

    /// Until when a request that may take so long has time, if that is not over yet because the
    /// source is dealing with a refusal, or was until just now.
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
    /// When the source has no token.
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

    /// Passes a response that is about tokens to the source. Returns whether to send the request again.
    ///
    /// # Errors
    ///
    /// When the source cannot get another token.
    pub async fn answered(&self, answer: &TokenResponse<'_>) -> Result<bool, TokenError> {
        let is_refused = matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if !is_refused && !answer.headers.contains_key(DPOP_NONCE) {
            return Ok(false);
        }
        let _dealing = is_refused.then(|| Dealing::begin(&self.refused));
        Ok(self.source.answered(answer).await? && is_refused)
    }
}

/// A refusal that is being dealt with, for as long as it is there.
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

/// [`TokenSource`] behind a pointer.
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

//! User interaction of a login: opens a page and receives the redirect.

use std::{fmt, future::Future, pin::Pin};

use crate::{client::error::OAuthError, fetch::form};

/// A method for users to log in.
///
/// [`LoopbackLogin`](super::LoopbackLogin) opens a browser on this machine.
/// [`ManualLogin`](super::ManualLogin) works without a local browser.
pub trait Login: Send + Sync + 'static {
    /// Prepares one login, before the URL of the login page is known, because that URL contains the
    /// redirect URI.
    ///
    /// `registered` is the redirect URI that the client is registered with. Implementations should
    /// reuse it if possible.
    fn prepare(
        &self,
        registered: Option<&str>,
    ) -> impl Future<Output = Result<PendingLogin, OAuthError>> + Send;
}

type Going = Pin<Box<dyn Future<Output = Result<RedirectParams, OAuthError>> + Send>>;

/// A prepared login.
pub struct PendingLogin {
    redirect_uri: String,
    go: Box<dyn FnOnce(String) -> Going + Send>,
}

impl PendingLogin {
    /// Creates a login. `go` gets the URL of the page to open, and returns the parameters of the
    /// redirect to `redirect_uri`.
    pub fn new<F, G>(redirect_uri: impl Into<String>, go: F) -> Self
    where
        F: FnOnce(String) -> G + Send + 'static,
        G: Future<Output = Result<RedirectParams, OAuthError>> + Send + 'static,
    {
        Self { redirect_uri: redirect_uri.into(), go: Box::new(|url| Box::pin(go(url))) }
    }

    pub(in crate::client) fn redirect_uri(&self) -> &str {
        &self.redirect_uri
    }

    pub(in crate::client) async fn go(self, url: String) -> Result<RedirectParams, OAuthError> {
        (self.go)(url).await
    }
}

impl fmt::Debug for PendingLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingLogin")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

/// Parameters of the redirect of a login.
pub struct RedirectParams(pub(super) Vec<(String, String)>);

impl fmt::Debug for RedirectParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An unused code is a secret.
        f.write_str("RedirectParams(…)")
    }
}

impl RedirectParams {
    /// Parses the parameters of a redirect URL.
    pub fn from_url(url: &str) -> Self {
        let url = url.split('#').next().unwrap_or(url);
        Self::from_query(url.split_once('?').map_or("", |(_, query)| query))
    }

    /// Parses the parameters of a query string.
    pub fn from_query(query: &str) -> Self {
        Self(form::decode(query))
    }

    /// Returns a parameter. A duplicate parameter is ambiguous and returns `None`.
    pub(in crate::client) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(known, _)| known == name);
        let first = found.next().map(|(_, value)| value.as_str());
        if found.next().is_some() { None } else { first }
    }

    /// Returns whether the redirect has neither a code nor an error.
    pub(in crate::client) fn is_empty(&self) -> bool {
        self.get("code").is_none() && self.get("error").is_none()
    }
}

/// Object-safe form of [`Login`].
pub(in crate::client) trait DynLogin: Send + Sync {
    fn prepare<'a>(
        &'a self,
        registered: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<PendingLogin, OAuthError>> + Send + 'a>>;
}

impl<L: Login> DynLogin for L {
    fn prepare<'a>(
        &'a self,
        registered: Option<&'a str>,
    ) -> Pin<Box<dyn Future<Output = Result<PendingLogin, OAuthError>> + Send + 'a>> {
        Box::pin(Login::prepare(self, registered))
    }
}

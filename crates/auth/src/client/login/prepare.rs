//! The part of a login that a person does: a page is opened, and what it leads to comes back.

use std::{fmt, future::Future, pin::Pin};

use crate::{client::error::OAuthError, fetch::form};

/// Has somebody log in.
///
/// Ready-made are [`LoopbackLogin`](super::LoopbackLogin), which opens a browser on this machine, and
/// [`ManualLogin`](super::ManualLogin), for where there is none.
pub trait Login: Send + Sync + 'static {
    /// Makes ready for one login. It comes before the page's address is known, since that has to say
    /// where to come back to. `registered` is where logins have come back to so far, if a client has
    /// been registered with that: to be used again if that can be done.
    fn prepare(
        &self,
        registered: Option<&str>,
    ) -> impl Future<Output = Result<PendingLogin, OAuthError>> + Send;
}

type Going = Pin<Box<dyn Future<Output = Result<RedirectParams, OAuthError>> + Send>>;

/// A login that can begin.
pub struct PendingLogin {
    redirect_uri: String,
    go: Box<dyn FnOnce(String) -> Going + Send>,
}

impl PendingLogin {
    /// `go` is given the page to open, and waits for what comes back to `redirect_uri`.
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

/// What came back: the parameters of a redirect.
pub struct RedirectParams(pub(super) Vec<(String, String)>);

impl fmt::Debug for RedirectParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A code is a secret for as long as it has not been used.
        f.write_str("RedirectParams(…)")
    }
}

impl RedirectParams {
    /// Takes the whole address that the browser was sent to.
    pub fn from_url(url: &str) -> Self {
        let url = url.split('#').next().unwrap_or(url);
        Self::from_query(url.split_once('?').map_or("", |(_, query)| query))
    }

    /// Takes what stands after the question mark.
    pub fn from_query(query: &str) -> Self {
        Self(form::decode(query))
    }

    /// A parameter. One that is there twice is as good as none: nobody knows which is meant.
    pub(in crate::client) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(known, _)| known == name);
        let first = found.next().map(|(_, value)| value.as_str());
        if found.next().is_some() { None } else { first }
    }

    /// Whether it says anything at all.
    pub(in crate::client) fn is_empty(&self) -> bool {
        self.get("code").is_none() && self.get("error").is_none()
    }
}

/// [`Login`] behind a pointer.
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

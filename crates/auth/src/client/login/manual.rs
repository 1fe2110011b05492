//! Login without a local browser: the user opens the page on another machine and pastes the
//! resulting URL.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use super::{Login, PendingLogin, RedirectParams};
use crate::client::OAuthError;

type Asking = Pin<Box<dyn Future<Output = std::io::Result<String>> + Send>>;

/// Login that shows a URL, and reads the URL to which the browser is redirected.
///
/// The redirect goes to a loopback address on the user's machine, where no server listens. The user
/// copies the URL from the address bar.
#[derive(Clone)]
pub struct ManualLogin {
    redirect_uri: String,
    ask: Arc<dyn Fn(String) -> Asking + Send + Sync>,
}

impl fmt::Debug for ManualLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManualLogin")
            .field("redirect_uri", &self.redirect_uri)
            .finish_non_exhaustive()
    }
}

impl ManualLogin {
    /// Creates a login. `ask` gets the URL to show, and returns the pasted text: the whole URL, or
    /// only the code if the page shows one.
    pub fn new<F, G>(ask: F) -> Self
    where
        F: Fn(String) -> G + Send + Sync + 'static,
        G: Future<Output = std::io::Result<String>> + Send + 'static,
    {
        Self {
            redirect_uri: "http://127.0.0.1:33418/callback".to_owned(),
            ask: Arc::new(move |url| Box::pin(ask(url))),
        }
    }

    /// Sets the redirect URI, if the client is registered with another one.
    #[must_use]
    pub fn redirect_uri(mut self, uri: impl Into<String>) -> Self {
        self.redirect_uri = uri.into();
        self
    }
}

impl Login for ManualLogin {
    async fn prepare(&self, _: Option<&str>) -> Result<PendingLogin, OAuthError> {
        let ask = Arc::clone(&self.ask);
        Ok(PendingLogin::new(self.redirect_uri.clone(), move |url| async move {
            let state = RedirectParams::from_url(&url).get("state").unwrap_or_default().to_owned();
            let pasted = ask(url).await.map_err(|error| OAuthError::Login(error.to_string()))?;
            let pasted = pasted.trim();
            match pasted {
                "" => Err(OAuthError::Login("the pasted text is empty; retry".to_owned())),
                whole if whole.contains("code=") || whole.contains("error=") => {
                    let query = whole.split_once('?').map_or(whole, |(_, query)| query);
                    Ok(RedirectParams::from_query(query))
                }
                // A pasted code has no `state`. PKCE binds it to this login.
                code => Ok(RedirectParams(vec![
                    ("code".to_owned(), code.to_owned()),
                    ("state".to_owned(), state),
                ])),
            }
        }))
    }
}

//! Checks that there is a token before a request is sent.

use std::fmt;

use http::Method;
use outlive::{
    auth::client::{OAuth, Tokens},
    client::{ClientError, Error, transport::TokenRequest},
};

use crate::settings::Upstream;

/// The tokens for requests to one upstream.
pub(super) struct TokenCheck {
    tokens: Tokens,
    url: String,
}

impl TokenCheck {
    pub(super) fn new(source: OAuth, upstream: &Upstream) -> Self {
        let url = upstream.address().unwrap_or_default().to_owned();
        Self { tokens: Tokens::new(source), url }
    }

    /// Acquires a token if it is missing or expires soon.
    ///
    /// # Errors
    ///
    /// Returns the reason why the token is missing.
    pub(super) async fn check(&self) -> Result<(), Error> {
        let request = TokenRequest::new(&Method::POST, &self.url);
        match self.tokens.token(&request).await {
            Ok(_) => Ok(()),
            Err(missing) => Err(ClientError::NoToken(missing).into()),
        }
    }
}

impl fmt::Debug for TokenCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenCheck(…)")
    }
}

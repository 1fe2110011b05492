//! A login that is under way: what its client wants, and what the provider has to bring back.

use http::StatusCode;
use outlive_protocol::Scopes;
use serde::{Deserialize, Serialize};

use super::{
    browser_reply::{back, told},
    redirect_uri::RedirectUri,
    reply::{Fault, Reply},
    scope_list,
};

/// What a client wants, once it is known to be one. It travels in a form and in a cookie, sealed.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Login {
    /// What the client is called in tokens.
    pub(super) client: String,
    /// The hash of its id: what it gets is for nobody else.
    pub(super) client_digest: String,
    pub(super) redirect_uri: String,
    /// Its own word for this login.
    pub(super) state: Option<String>,
    /// The hash of what it will show for the code.
    pub(super) challenge: String,
    /// The scopes that the client asks for and that exist here. Which of them the user gets depends on
    /// who that is.
    #[serde(with = "scope_list")]
    pub(super) scopes: Scopes,
    /// Until when, in seconds since 1970.
    pub(super) until: i64,
}

impl Login {
    /// Sends the browser back to the client.
    pub(super) fn back<'a>(
        &'a self,
        issuer: &'a str,
        with: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Reply {
        match RedirectUri::parse(&self.redirect_uri) {
            Some(uri) => back(uri, self.state.as_deref(), issuer, with),
            None => told(StatusCode::BAD_REQUEST, "There is no way back to the application."),
        }
    }

    pub(super) fn refused(&self, issuer: &str, fault: Fault) -> Reply {
        self.back(issuer, [("error", fault.error), ("error_description", fault.description)])
    }
}

/// A login that is with the provider. It is in a cookie of the browser that has begun it, sealed.
#[derive(Serialize, Deserialize)]
pub(super) struct Underway {
    pub(super) login: Login,
    /// What we will show for the provider's code.
    pub(super) verifier: String,
    /// What the provider's ID token has to say.
    pub(super) nonce: String,
}

/// The cookie of a login that is with the provider. A browser may have several.
pub(super) fn login_cookie(state: &str) -> String {
    format!("login-{}", state.get(..16).unwrap_or(state))
}

//! A login in progress: the request of the client, and the data to verify the callback of the
//! provider.

use http::StatusCode;
use outlive_protocol::Scopes;
use serde::{Deserialize, Serialize};

use super::{
    browser_reply::{back, error_page},
    redirect_uri::RedirectUri,
    reply::{ErrorReply, Reply},
    scope_list,
};

/// Login request of a verified client. Sealed into a form and a cookie.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Login {
    /// Short name of the client, for tokens.
    pub(super) client: String,
    /// Hash of the client ID. The code is bound to it.
    pub(super) client_digest: String,
    pub(super) redirect_uri: String,
    /// `state` of the client.
    pub(super) state: Option<String>,
    /// Hash of the verifier for the code.
    pub(super) challenge: String,
    /// Supported scopes that the client requests. The user determines which of them are granted.
    #[serde(with = "scope_list")]
    pub(super) scopes: Scopes,
    /// Expiry in Unix seconds.
    pub(super) until: i64,
}

impl Login {
    /// Redirects the browser to the client.
    pub(super) fn back<'a>(
        &'a self,
        issuer: &'a str,
        with: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Reply {
        match RedirectUri::parse(&self.redirect_uri) {
            Some(uri) => back(uri, self.state.as_deref(), issuer, with),
            None => error_page(
                StatusCode::BAD_REQUEST,
                "The redirect URI of the application is invalid.",
            ),
        }
    }

    pub(super) fn refused(&self, issuer: &str, error: ErrorReply) -> Reply {
        self.back(issuer, [("error", error.code), ("error_description", error.description)])
    }
}

/// A login at the provider. Sealed into a cookie of the browser that started it.
#[derive(Serialize, Deserialize)]
pub(super) struct Underway {
    pub(super) login: Login,
    /// Verifier for the provider's code.
    pub(super) verifier: String,
    /// Nonce that the provider's ID token must contain.
    pub(super) nonce: String,
}

/// Returns the name of the cookie of a login. A browser may have several.
pub(super) fn login_cookie(state: &str) -> String {
    format!("login-{}", state.get(..16).unwrap_or(state))
}

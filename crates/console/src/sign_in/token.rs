//! Sign-in with a token, and the check of credentials by the authenticator of the MCP endpoint.

use std::time::Duration;

use http::{HeaderValue, StatusCode, header, request::Parts};
use outlive::{
    server::{
        Principal,
        http::{AuthDecision, AuthRejection, Authenticator},
    },
    store::StoreError,
};

/// Time after which a client retries if a credential cannot be checked.
const RETRY: Duration = Duration::from_secs(5);

/// The reason why a credential is not accepted.
#[derive(Debug)]
pub(crate) enum Denied {
    /// The credential is not valid, or no longer valid.
    Rejected,
    /// The credential cannot be checked at the moment.
    Unavailable(Duration),
}

impl Denied {
    /// Returns a denial because of a failed dependency, and logs its error.
    pub(crate) fn unavailable(error: &dyn std::fmt::Display) -> Self {
        tracing::warn!(%error, "a credential cannot be checked");
        Self::Unavailable(RETRY)
    }
}

impl From<AuthRejection> for Denied {
    fn from(rejection: AuthRejection) -> Self {
        match rejection.status() {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::Unavailable(RETRY)
            }
            _ => Self::Rejected,
        }
    }
}

impl From<StoreError> for Denied {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error)
    }
}

/// Authenticates a request.
pub(crate) async fn authenticate(
    authenticator: &dyn Authenticator,
    parts: &Parts,
) -> Result<Principal, AuthRejection> {
    match authenticator.authenticate(parts) {
        AuthDecision::Now(result) => result,
        AuthDecision::Later(result) => result.await,
    }
}

/// Checks the token of a session, or of a sign-in. An MCP token is rejected: agents read it in their
/// configuration, so it must not sign a browser in.
pub(crate) async fn check(
    authenticator: &dyn Authenticator,
    parts: &Parts,
    token: &str,
) -> Result<Principal, Denied> {
    let Ok(mut value) = HeaderValue::try_from(format!("Bearer {token}")) else {
        return Err(Denied::Rejected);
    };
    value.set_sensitive(true);
    let mut parts = parts.clone();
    parts.headers.insert(header::AUTHORIZATION, value);
    let principal = authenticate(authenticator, &parts).await?;
    match principal.is_deciding() {
        true => Ok(principal),
        false => Err(Denied::Rejected),
    }
}

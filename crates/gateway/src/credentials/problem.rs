//! Reasons why a token for an upstream is missing, with remedies.

use outlive::{
    auth::client::{OAuthError, OAuthRequest},
    client::{ClientError, Error},
};

use crate::{
    excerpt::excerpt,
    settings::{AuthKind, Upstream, UpstreamAuth},
    status::{Problem, State},
};

/// Returns the problem of an error that concerns the credential, if it does.
pub(crate) fn problem_of(upstream: &Upstream, error: &Error) -> Option<Problem> {
    let auth = upstream.oauth()?;
    let Error::Client(ClientError::NoToken(error)) = error else { return None };
    let error = error.downcast_ref::<OAuthError>()?;
    let problem = of_oauth(upstream, auth, error);
    let is_of_user = auth.is_of_users() && concerns_user(error);
    Some(if is_of_user { problem.for_principal() } else { problem })
}

/// Returns whether an error concerns one user, not the client or the server.
fn concerns_user(error: &OAuthError) -> bool {
    match error {
        OAuthError::LoginRequired { .. }
        | OAuthError::Assertion(_)
        | OAuthError::InsufficientScope { .. }
        | OAuthError::TokenRefused { .. } => true,
        OAuthError::Refused { response, .. } => {
            matches!(&*response.code, "access_denied" | "invalid_grant" | "invalid_request")
        }
        _ => false,
    }
}

fn of_oauth(upstream: &Upstream, auth: &UpstreamAuth, error: &OAuthError) -> Problem {
    let is_exchange = matches!(auth.kind, AuthKind::Exchange(_));
    match error {
        OAuthError::LoginRequired { .. } => return needs_login(upstream, auth),
        OAuthError::Assertion(_) if is_exchange => return needs_login(upstream, auth),
        // The codes for an expired subject token (RFC 8693 section 2.2.2).
        OAuthError::Refused { request: OAuthRequest::TokenExchange, response }
            if matches!(&*response.code, "invalid_grant" | "invalid_request") =>
        {
            return needs_login(upstream, auth);
        }
        _ => {}
    }
    let state = match error {
        OAuthError::Refused { .. }
        | OAuthError::InsufficientScope { .. }
        | OAuthError::TokenRefused { .. } => State::Refused,
        OAuthError::Store(_) => State::Unreachable,
        error if error.is_transient() => State::Unreachable,
        _ => State::Misconfigured,
    };
    let text = excerpt(&error.to_string());
    // The texts of these errors end with their remedy.
    let (reason, remedy) = text.rsplit_once("; ").unwrap_or((&text, "check `auth`"));
    Problem::new(state, format!("it has no token: {reason}"), remedy.to_owned())
}

/// Returns the problem of a missing login.
pub(crate) fn needs_login(upstream: &Upstream, auth: &UpstreamAuth) -> Problem {
    let name = upstream.name();
    match &auth.kind {
        AuthKind::Login => Problem::new(
            State::NeedsLogin,
            "it requires a login of the gateway",
            format!("run: outlive login --upstream {name}"),
        ),
        AuthKind::ClientCredentials => Problem::new(
            State::NeedsLogin,
            "its authorization server issued no valid token",
            "check `auth` of the upstream",
        ),
        AuthKind::Exchange(_) => Problem::new(
            State::NeedsLogin,
            "the token of the user for it has expired and cannot be renewed",
            "send another request with a valid access token",
        ),
        AuthKind::EachUser => Problem::new(
            State::NeedsLogin,
            "you are not logged in at it",
            "log in on the page that this server names",
        ),
    }
}

#[cfg(test)]
mod tests {
    use outlive::auth::client::TokenError;

    use super::*;

    fn error(error: OAuthError) -> Error {
        ClientError::NoToken(TokenError::new(error)).into()
    }

    #[test]
    fn problem_of_a_missing_login_names_the_command() {
        let linear = Upstream::url("linear", "https://a.example/mcp").auth(UpstreamAuth::login());
        let missing = OAuthError::LoginRequired { server: "https://a.example/mcp".to_owned() };
        let problem = problem_of(&linear, &error(missing)).unwrap();
        assert_eq!(problem.state, State::NeedsLogin);
        assert_eq!(problem.remedy, "run: outlive login --upstream linear");
        let plain = Upstream::url("linear", "https://a.example/mcp").token("t");
        let missing = OAuthError::LoginRequired { server: String::new() };
        assert!(problem_of(&plain, &error(missing)).is_none());
    }

    #[test]
    fn problem_of_a_refused_token_ends_with_its_remedy() {
        let auth = UpstreamAuth::client_credentials("id").client_secret("s");
        let upstream = Upstream::url("up", "https://a.example/mcp").auth(auth);
        let refused = OAuthError::InsufficientScope {
            server: "https://a.example/mcp".to_owned(),
            scopes: "write".to_owned(),
        };
        let problem = problem_of(&upstream, &error(refused)).unwrap();
        assert_eq!(problem.state, State::Refused);
        assert!(problem.reason.contains("`write`"), "{problem:?}");
        assert!(problem.remedy.starts_with("request access"), "{problem:?}");
    }
}

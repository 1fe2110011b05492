//! Asks a user to log in at an upstream, on a page of this server.

use std::time::Duration;

use http::Method;
use outlive::{
    auth::client::Tokens,
    client::transport::TokenRequest,
    server::{
        Durable, Error, Result,
        durable::{DurableError, ElicitOutcome},
    },
};

use super::{failure, route::Reached};
use crate::status::Problem;

/// Time for the user to respond to the input request.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(600);

/// Time for the user to log in, after the response.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);

/// Interval in which the store is checked for the login.
const POLL: Duration = Duration::from_secs(1);

/// Asks the user to log in at the upstream of a call, and waits for the login.
///
/// # Errors
///
/// Returns an error with the address of the page if the client cannot open URLs, if the user does not
/// agree or has been asked before, or if the login takes too long.
pub(super) async fn request_login(
    cx: &Durable,
    reached: &Reached,
    problem: &Problem,
    is_repeated: bool,
) -> Result<()> {
    let name = reached.name();
    let Some(url) = reached.shared.credentials.connect_url(&name, cx.principal()) else {
        return Err(Error::new(failure::of_problem(&name, problem)));
    };
    let missing = || Error::new(missing_login(&name, &url));
    if is_repeated || !agrees(cx, &name, &url).await? {
        return Err(missing());
    }
    let waiting = async {
        while !is_logged_in(cx, reached).await {
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::select! {
        logged_in = tokio::time::timeout(LOGIN_TIMEOUT, waiting) => {
            logged_in.map_err(|_| missing())?;
        }
        () = cx.cancelled() => return Err(Error::new("the call was cancelled")),
    }
    cx.complete_url_elicitation(key(&name));
    Ok(())
}

/// Returns the text for a user who is not logged in.
pub(crate) fn missing_login(upstream: &str, url: &str) -> String {
    format!("upstream `{upstream}`: you are not logged in at it; log in at {url}, then call again")
}

/// Asks the user to open the page. Returns whether the user agrees; `false` if the client cannot open
/// URLs.
pub(crate) async fn agrees(cx: &Durable, upstream: &str, url: &str) -> Result<bool> {
    let prompt = format!("Log in at `{upstream}`, so that it can be used with your account.");
    let asked = cx.elicit_url(key(upstream), prompt, url).timeout(RESPONSE_TIMEOUT);
    match asked.outcome().await {
        Ok(ElicitOutcome::Accepted(())) => Ok(true),
        Ok(_) => Ok(false),
        Err(error) => match error.durable_error() {
            Some(
                DurableError::MissingCapability { .. }
                | DurableError::ClientError { .. }
                | DurableError::TimedOut { .. },
            ) => Ok(false),
            _ => Err(error),
        },
    }
}

fn key(upstream: &str) -> String {
    format!("login/{upstream}")
}

/// Returns whether the principal of a call has a token for its upstream.
async fn is_logged_in(cx: &Durable, reached: &Reached) -> bool {
    let settings = reached.member.settings();
    let Some(auth) = settings.oauth() else { return false };
    let principal = Some(cx.principal().key());
    let Ok(source) = reached.shared.credentials.source(&settings, auth, principal) else {
        return false;
    };
    let request = TokenRequest::new(&Method::POST, settings.address().unwrap_or_default());
    Tokens::new(source).token(&request).await.is_ok()
}

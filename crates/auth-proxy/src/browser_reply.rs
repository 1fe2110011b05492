//! Replies to browsers: pages, and redirects to the client and to the provider.

use http::{HeaderValue, StatusCode, header};
use outlive_auth::fetch::form;

use super::{
    page,
    redirect_uri::RedirectUri,
    reply::{ErrorReply, Reply, empty, guard},
};

/// Returns a page with an error for the user, if the error must not go to the client.
pub(super) fn error_page(status: StatusCode, what: &str) -> Reply {
    page::reply(status, &page::problem(what))
}

/// Redirects the browser.
pub(super) fn redirect(url: &str) -> Reply {
    // Status 303 makes the browser send a GET, so that it does not resend a form.
    let mut reply = empty(StatusCode::SEE_OTHER);
    let headers = reply.headers_mut();
    match HeaderValue::from_str(url) {
        Ok(url) => drop(headers.insert(header::LOCATION, url)),
        Err(_) => {
            return error_page(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The redirect URI is not a valid header.",
            );
        }
    }
    guard(headers);
    reply
}

/// Returns a page that shows the user an error in a client's request. Does not redirect: the user
/// has not consented, and the redirect URI may belong to an attacker.
pub(super) fn mistake(
    error: ErrorReply,
    redirect_uri: RedirectUri<'_>,
    state: Option<&str>,
    issuer: &str,
) -> Reply {
    let with = [("error", error.code), ("error_description", error.description)];
    let link = client_url(redirect_uri, state, issuer, with);
    let what = format!("{} ({})", error.description, error.code);
    page::reply(StatusCode::BAD_REQUEST, &page::mistake(&what, redirect_uri.host(), &link))
}

/// Redirects the browser to the client with these parameters. Adds the client's `state` and the
/// issuer (RFC 9207).
pub(super) fn back<'a>(
    redirect_uri: RedirectUri<'a>,
    state: Option<&'a str>,
    issuer: &'a str,
    with: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Reply {
    redirect(&client_url(redirect_uri, state, issuer, with))
}

/// Returns the redirect URI of the client with these parameters.
fn client_url<'a>(
    redirect_uri: RedirectUri<'a>,
    state: Option<&'a str>,
    issuer: &'a str,
    with: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let state = state.map(|state| ("state", state));
    let query = form::encode(with.into_iter().chain(state).chain([("iss", issuer)]));
    let whole = redirect_uri.as_str();
    let separator = if whole.contains('?') { '&' } else { '?' };
    format!("{whole}{separator}{query}")
}

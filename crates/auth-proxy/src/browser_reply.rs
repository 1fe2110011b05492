//! Replies to browsers: pages, and redirects to the client and to the provider.

use http::{HeaderValue, StatusCode, header};
use outlive_auth::fetch::form;

use super::{
    page,
    redirect_uri::RedirectUri,
    reply::{Fault, Reply, empty, guard},
};

/// Tells the person at the browser what went wrong. For all that no client may be told.
pub(super) fn told(status: StatusCode, what: &str) -> Reply {
    page::reply(status, &page::problem(what))
}

/// Sends a browser somewhere.
pub(super) fn redirect(url: &str) -> Reply {
    // After a form as well: what was in it goes no further.
    let mut reply = empty(StatusCode::SEE_OTHER);
    let headers = reply.headers_mut();
    match HeaderValue::from_str(url) {
        Ok(url) => drop(headers.insert(header::LOCATION, url)),
        Err(_) => {
            return told(StatusCode::INTERNAL_SERVER_ERROR, "The way back cannot be written.");
        }
    }
    guard(headers);
    reply
}

/// Shows a person what is wrong with a client's request. The browser stays here: nobody has consented
/// to anything, and the place may be anybody's.
pub(super) fn mistake(
    fault: Fault,
    redirect_uri: RedirectUri<'_>,
    state: Option<&str>,
    issuer: &str,
) -> Reply {
    let with = [("error", fault.error), ("error_description", fault.description)];
    let link = way_back(redirect_uri, state, issuer, with);
    let what = format!("{} ({})", fault.description, fault.error);
    page::reply(StatusCode::BAD_REQUEST, &page::mistake(&what, redirect_uri.host(), &link))
}

/// Sends a browser back to the client, with these parameters. The client's word for the login is one of
/// them, and our name (RFC 9207).
pub(super) fn back<'a>(
    redirect_uri: RedirectUri<'a>,
    state: Option<&'a str>,
    issuer: &'a str,
    with: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Reply {
    redirect(&way_back(redirect_uri, state, issuer, with))
}

/// The client's place, with these parameters.
fn way_back<'a>(
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

//! Whole answers: JSON for clients, pages and redirects for browsers.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde::Serialize;

use super::{login_store::LoginStoreError, page, redirect_uri::RedirectUri};
use outlive_auth::fetch::form;

/// An answer.
pub(super) type Reply = Response<Bytes>;

/// What a client did wrong, in the words of RFC 6749, 7009, 7591 and 8707.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fault {
    pub(super) error: &'static str,
    pub(super) description: &'static str,
}

impl Fault {
    pub(super) const fn new(error: &'static str, description: &'static str) -> Self {
        Self { error, description }
    }

    /// Something here, or with the provider, that may well work later.
    pub(super) const UNAVAILABLE: Self =
        Self::new("temporarily_unavailable", "this cannot be done at the moment; try again later");

    /// As the body of an answer.
    pub(super) fn reply(self) -> Reply {
        #[derive(Serialize)]
        struct Written {
            error: &'static str,
            error_description: &'static str,
        }
        let status = match self.error {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "temporarily_unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::BAD_REQUEST,
        };
        let Self { error, description: error_description } = self;
        json(status, &Written { error, error_description })
    }
}

impl From<LoginStoreError> for Fault {
    fn from(error: LoginStoreError) -> Self {
        tracing::warn!(%error, "the proxy could not do what it was asked");
        Self::UNAVAILABLE
    }
}

/// JSON that nobody keeps: it has tokens, or depends on who asks.
pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(value).unwrap_or_default();
    let mut reply = document(Bytes::from(body));
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

/// JSON that is the same for everybody.
pub(super) fn document(body: Bytes) -> Reply {
    let mut reply = Response::new(body);
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    reply
}

/// Lets web pages of any origin read an answer. No cookie plays a part in it, so they learn nothing
/// that any program could not.
pub(super) fn for_any_origin(mut reply: Reply) -> Reply {
    let any = HeaderValue::from_static("*");
    reply.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, any);
    reply
}

/// Answers the question whether a page may send a request.
pub(super) fn preflight() -> Reply {
    let mut reply = empty(StatusCode::NO_CONTENT);
    let headers = reply.headers_mut();
    let methods = HeaderValue::from_static("GET, POST");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    reply
}

/// A method that a path does not have.
pub(super) fn method_not_allowed(allowed: &Method) -> Reply {
    let mut reply = empty(StatusCode::METHOD_NOT_ALLOWED);
    if let Ok(allowed) = HeaderValue::from_str(allowed.as_str()) {
        reply.headers_mut().insert(header::ALLOW, allowed);
    }
    reply
}

pub(super) fn empty(status: StatusCode) -> Reply {
    let mut reply = Response::new(Bytes::new());
    *reply.status_mut() = status;
    reply
}

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

/// What holds for all that browsers see: nobody keeps it, and nobody is told where it came from.
pub(super) fn guard(headers: &mut HeaderMap) {
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

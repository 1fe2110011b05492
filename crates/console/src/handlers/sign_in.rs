//! The paths below `in`: the sign-in page, one-time links and OAuth.

use std::sync::Arc;

use http::{Method, StatusCode, header};
use outlive::{auth::client::OAuthError, people::Channel, server::Principal};

use super::visit::{PageError, theme};
use crate::{
    cookies::{SESSION, SIGN_IN},
    http::{Reply, page, redirect},
    pages::{self, plain::Plain},
    request::{ConsoleRequest, decoded, is_loopback_host},
    sign_in::{
        form_token, link,
        oauth::OAuthSignIn,
        session::{Credential, SessionId, random_text},
        token::{self, Denied},
    },
    state::ConsoleState,
    urlencoded::encode,
};

/// Text for every token that does not sign a browser in.
const WRONG_TOKEN: &str = "This token is wrong.";

/// Text for a form of another browser.
const STALE: &str = "The sign-in page has expired. Try again.";

/// Responds to a path below `in`.
pub(crate) async fn respond(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
) -> Result<Reply, PageError> {
    let segments = request.segments();
    match (segments.as_slice(), request.method()) {
        (["in"], &Method::GET | &Method::HEAD) => show(state, request, StatusCode::OK, None).await,
        (["in"], &Method::POST) => token_form(state, request).await,
        (["in", "start"], &Method::GET) => start(state, request).await,
        (["in", "callback"], &Method::GET) => callback(state, request).await,
        (["in", key], &Method::GET) => one_time_link(state, request, &decoded(key)).await,
        (["in"], _) => Err(PageError::Method("GET, HEAD, POST")),
        (["in", _], _) => Err(PageError::Method("GET")),
        _ => Err(PageError::NotFound),
    }
}

/// Redirects a visitor without a credential to the sign-in page, and from there to this page.
pub(crate) fn redirect_here(request: &ConsoleRequest) -> Reply {
    let query = request.parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let next = encode(&format!("{}{query}", request.path));
    redirect(&format!("{}in?next={next}", request.base()))
}

/// Shows the sign-in page.
async fn show(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
    status: StatusCode,
    error: Option<&str>,
) -> Result<Reply, PageError> {
    if error.is_none() && state.sign_in.visitor(request).await?.is_some() {
        return Ok(redirect(&format!("{}{}", request.base(), next(request))));
    }
    let cookies = state.sign_in.cookies(request);
    let known = cookies.get(request.headers(), SIGN_IN).map(str::to_owned);
    let browser = known.or_else(random_text).unwrap_or_default();
    let authorize = format!("{}in/start?next={}", request.base(), encode(&next(request)));
    let (base, oauth) = (request.base(), state.sign_in.oauth.is_some());
    let sign_in = pages::sign_in::SignIn {
        accepts_token: request.authenticator().is_some() && !oauth,
        authorize: oauth.then_some(authorize.as_str()),
        form_token: &form_token::create(&state.sign_in.vault, &browser, "in"),
        error,
    };
    let html = pages::sign_in::render(&Plain { base: &base, theme: theme(request) }, sign_in);
    let mut reply = page(status, html.into_string());
    let cookie = cookies.set(SIGN_IN, &browser, state.sign_in.sessions.ttl());
    reply.headers_mut().append(header::SET_COOKIE, cookie);
    Ok(reply)
}

/// Signs a browser in with a token.
async fn token_form(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
) -> Result<Reply, PageError> {
    let sign_in = &state.sign_in;
    admit(state, request, "sign-in")?;
    let Some(authenticator) = request.authenticator().filter(|_| sign_in.oauth.is_none()) else {
        return Err(PageError::NotFound);
    };
    let values = request.form();
    let browser = sign_in.cookies(request).get(request.headers(), SIGN_IN).unwrap_or_default();
    let form_token = values.get(form_token::FIELD).unwrap_or_default();
    if browser.is_empty() || !sign_in.is_own_form(request, browser, "in", form_token) {
        return show(state, request, StatusCode::FORBIDDEN, Some(STALE)).await;
    }
    let token = values.get("token").unwrap_or_default().trim();
    match token::check(&**authenticator, &request.parts, token).await {
        Ok(principal) => {
            let credential = Credential::Token(token.to_owned());
            let id = session_id()?;
            open_session(state, request, &id, &principal, credential, &next(request)).await
        }
        Err(Denied::Rejected) => {
            show(state, request, StatusCode::FORBIDDEN, Some(WRONG_TOKEN)).await
        }
        Err(unavailable) => Err(unavailable.into()),
    }
}

/// Signs a browser on this machine in with a one-time link.
async fn one_time_link(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
    key: &str,
) -> Result<Reply, PageError> {
    admit(state, request, "sign-in")?;
    let is_local = request.address().is_some_and(|address| address.is_loopback());
    let is_here = is_local && request.authenticator().is_none();
    if !is_here || !link::redeem(&state.sign_in.vault, key).await.map_err(Denied::from)? {
        return Err(PageError::NotFound);
    }
    let principal = Principal::LOCAL.deciding();
    open_session(state, request, &session_id()?, &principal, Credential::Link, "").await
}

/// Redirects the browser to the authorization server.
async fn start(state: &Arc<ConsoleState>, request: &ConsoleRequest) -> Result<Reply, PageError> {
    let oauth = oauth(state)?;
    admit(state, request, "sign-in")?;
    let cookies = state.sign_in.cookies(request);
    let known = cookies.get(request.headers(), SIGN_IN).map(str::to_owned);
    let browser = known.or_else(random_text).ok_or_else(no_random_bytes)?;
    let redirect_uri = redirect_uri(state, request).ok_or(PageError::NotFound)?;
    match oauth.start(&browser, &redirect_uri, &next(request)).await {
        Ok(url) => {
            let mut reply = redirect(&url);
            let cookie = cookies.set(SIGN_IN, &browser, state.sign_in.sessions.ttl());
            reply.headers_mut().append(header::SET_COOKIE, cookie);
            Ok(reply)
        }
        Err(error) => failed(state, request, &error).await,
    }
}

/// Finishes an OAuth login.
async fn callback(state: &Arc<ConsoleState>, request: &ConsoleRequest) -> Result<Reply, PageError> {
    let oauth = oauth(state)?;
    admit(state, request, "callback")?;
    let authenticator = request.authenticator().ok_or(PageError::NotFound)?;
    let cookies = state.sign_in.cookies(request);
    let Some(browser) = cookies.get(request.headers(), SIGN_IN) else {
        return show(state, request, StatusCode::FORBIDDEN, Some(STALE)).await;
    };
    let (id, query) = (session_id()?, request.parts.uri.query().unwrap_or_default());
    let digest = id.digest();
    let next = match oauth.finish(browser, query, &digest).await {
        Ok(next) => next,
        Err(error) => return failed(state, request, &error).await,
    };
    match oauth.check(&**authenticator, &request.parts, &digest).await {
        Ok(principal) => {
            open_session(state, request, &id, &principal, Credential::OAuth, &next).await
        }
        Err(Denied::Rejected) => {
            oauth.forget(&digest).await;
            let text = "The server does not accept the token of your account. Ask its operator.";
            show(state, request, StatusCode::FORBIDDEN, Some(text)).await
        }
        Err(unavailable) => Err(unavailable.into()),
    }
}

/// Creates a session, and opens a page in it.
async fn open_session(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
    id: &SessionId,
    principal: &Principal,
    credential: Credential,
    next: &str,
) -> Result<Reply, PageError> {
    let sign_in = &state.sign_in;
    let Some(person) = principal.person() else { return Err(PageError::NotFound) };
    let created = sign_in.sessions.create(id, principal, person, credential).await;
    created.map_err(Denied::from)?;
    let visitor = sign_in.roles.visitor(principal, Channel::Console);
    state.people.signed_in(&visitor).await?;
    let cookies = sign_in.cookies(request);
    let mut reply = redirect(&format!("{}{next}", request.base()));
    let headers = reply.headers_mut();
    headers.append(header::SET_COOKIE, cookies.set(SESSION, id.as_str(), sign_in.sessions.ttl()));
    headers.append(header::SET_COOKIE, cookies.unset(SIGN_IN));
    Ok(reply)
}

/// Shows why an OAuth login failed.
async fn failed(
    state: &Arc<ConsoleState>,
    request: &ConsoleRequest,
    error: &OAuthError,
) -> Result<Reply, PageError> {
    tracing::warn!(%error, "a sign-in with OAuth failed");
    let text = format!("The sign-in failed: {error}.");
    let status = match error {
        OAuthError::Fetch(_) => StatusCode::BAD_GATEWAY,
        _ => StatusCode::FORBIDDEN,
    };
    show(state, request, status, Some(&text)).await
}

/// Counts a sign-in of an address.
fn admit(state: &ConsoleState, request: &ConsoleRequest, what: &str) -> Result<(), PageError> {
    let key = format!("{what} {}", request.network());
    let now = state.sign_in.vault.instant();
    state.sign_in.attempts.admit(&key, now).map_err(PageError::TooMany)
}

fn oauth(state: &ConsoleState) -> Result<&OAuthSignIn, PageError> {
    state.sign_in.oauth.as_ref().ok_or(PageError::NotFound)
}

fn session_id() -> Result<SessionId, PageError> {
    SessionId::random().ok_or_else(no_random_bytes)
}

fn no_random_bytes() -> PageError {
    Denied::unavailable(&"the operating system provides no random bytes").into()
}

/// Returns the page of the console to open after the sign-in, relative to its root.
fn next(request: &ConsoleRequest) -> String {
    let next = request.query().get("next").unwrap_or_default().to_owned();
    let path = next.split('?').next().unwrap_or_default();
    let is_path = next.len() <= 2_048
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
        && !path.contains(':')
        && path.split('/').all(|part| !matches!(part, "." | ".."))
        && !path.starts_with('/');
    if is_path { next } else { String::new() }
}

/// Returns the address to which the authorization server redirects the browser.
fn redirect_uri(state: &ConsoleState, request: &ConsoleRequest) -> Option<String> {
    let origin = match &state.sign_in.public_url {
        Some(url) => url.clone(),
        None => {
            let host = request.host()?;
            let scheme = if is_loopback_host(host) { "http" } else { "https" };
            format!("{scheme}://{host}")
        }
    };
    Some(format!("{origin}{}/in/callback", state.path))
}

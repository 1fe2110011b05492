//! A person is asked whether a client may. Without that any page could have somebody log in for a
//! client of its own, because the provider knows all of them as one and asks no more.
//!
//! What is asked about is sealed into the form, for the browser that was asked: nobody else's answer
//! counts. Only then a login begins with the provider, and with it a cookie that the browser has to
//! come back with.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};

use super::{
    browser_reply::{redirect, told},
    client::{self, Client},
    keys::{digest, random},
    login::{Login, Underway, login_cookie},
    page::{self, ConsentPage},
    params::Params,
    redirect_uri::RedirectUri,
    reply::{Fault, Reply},
    state::ProxyState,
};

/// Consents that a browser remembers; more than a person has applications.
const REMEMBERED: usize = 32;

/// What a person is shown if we cannot ask, before any client may be told.
const LATER: &str = "This cannot be done at the moment. Try again later.";

/// The cookie that tells browsers apart.
const BROWSER: &str = "browser";

/// The cookie with what was consented to.
const CONSENTS: &str = "consents";

/// Asks, unless the same was allowed before in this browser.
pub(super) async fn ask(
    proxy: &ProxyState,
    headers: &HeaderMap,
    id: &str,
    client: &Client,
    login: Login,
) -> Reply {
    let Some(uri) = RedirectUri::parse(&login.redirect_uri) else {
        return told(StatusCode::BAD_REQUEST, "There is no way back to the application.");
    };
    if consents(proxy, headers).contains(&subject(&login)) {
        return forward(proxy, login).await;
    }
    let known = proxy.cookies.get(headers, BROWSER).filter(|browser| browser.len() == 43);
    let Some(browser) = known.map(str::to_owned).or_else(random) else {
        return told(StatusCode::SERVICE_UNAVAILABLE, LATER);
    };
    let cookie = proxy.cookies.set(BROWSER, &browser, proxy.spans.login);
    let sealed = proxy.keys.seal(&login, &["consent", &browser]);
    let (Some(cookie), Some(request)) = (cookie, sealed) else {
        return told(StatusCode::SERVICE_UNAVAILABLE, LATER);
    };
    let (scopes, if_granted) = proxy.scopes.split(&login.scopes);
    let is_document = client::is_document(id);
    let host = |url: &str| url.split('/').nth(2).unwrap_or_default().to_owned();
    let html = page::consent(&ConsentPage {
        client: client.name.as_deref().unwrap_or("An application without a name"),
        vouched_by: is_document.then(|| host(id)).as_deref(),
        server: &proxy.name,
        scopes: &scopes,
        if_granted: &if_granted,
        goes_to: uri.host(),
        is_loopback: uri.is_loopback(),
        provider: proxy.provider.host(),
        action: &format!("{}/consent", proxy.base),
        request: &request,
    });
    let mut reply = page::reply(StatusCode::OK, &html);
    reply.headers_mut().append(header::SET_COOKIE, cookie);
    reply
}

/// Takes what the person has decided.
pub(super) async fn respond(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let foreign = "This page was not shown in this browser, or too long ago. Begin again in your application.";
    let headers = request.headers();
    // Browsers say which page a form is of. The seal would do: this is the second lock.
    let origin = headers.get(header::ORIGIN);
    if origin.is_some_and(|origin| origin.as_bytes() != proxy.origin.as_bytes()) {
        return told(StatusCode::FORBIDDEN, foreign);
    }
    let params = Params::read(&String::from_utf8_lossy(request.body()));
    let browser = proxy.cookies.get(headers, BROWSER);
    let login = browser
        .zip(params.get("request"))
        .and_then(|(browser, request)| proxy.keys.open::<Login>(request, &["consent", browser]));
    let Some(login) = login.filter(|login| proxy.now() < login.until) else {
        return told(StatusCode::FORBIDDEN, foreign);
    };
    if params.get("decision") != Some("allow") {
        return login
            .refused(&proxy.issuer, Fault::new("access_denied", "the user has not allowed it"));
    }
    let remembered = remember(proxy, headers, &login);
    let mut reply = forward(proxy, login).await;
    reply.headers_mut().extend(remembered.map(|cookie| (header::SET_COOKIE, cookie)));
    reply
}

/// Sends the browser to the provider, with a cookie that it has to come back with.
async fn forward(proxy: &ProxyState, login: Login) -> Reply {
    let (Some(state), Some(verifier), Some(nonce)) = (random(), random(), random()) else {
        return login.refused(&proxy.issuer, Fault::UNAVAILABLE);
    };
    let page = proxy.provider.login_page(&proxy.callback(), &state, &verifier, &nonce).await;
    let underway = Underway { login, verifier, nonce };
    let sealed = proxy.keys.seal(&underway, &["login", &state]);
    let login = underway.login;
    let cookie = sealed
        .and_then(|sealed| proxy.cookies.set(&login_cookie(&state), &sealed, proxy.spans.login));
    match (page, cookie) {
        (Ok(page), Some(cookie)) => {
            let mut reply = redirect(&page);
            reply.headers_mut().append(header::SET_COOKIE, cookie);
            reply
        }
        (Ok(_), None) => login.refused(
            &proxy.issuer,
            Fault::new("invalid_request", "all of it together is too long for a cookie"),
        ),
        (Err(_), _) => login.refused(&proxy.issuer, Fault::UNAVAILABLE),
    }
}

/// What a consent is for: the client, the place and the scopes.
fn subject(login: &Login) -> String {
    digest(&format!("{} {} {}", login.client_digest, login.redirect_uri, login.scopes))
}

/// What was consented to in this browser.
fn consents(proxy: &ProxyState, headers: &HeaderMap) -> Vec<String> {
    let cookie = proxy.cookies.get(headers, CONSENTS);
    let opened = cookie.and_then(|cookie| proxy.keys.open(cookie, &[CONSENTS]));
    let (until, consents): (i64, Vec<String>) = opened.unwrap_or_default();
    if proxy.now() < until { consents } else { Vec::new() }
}

/// The cookie that remembers a consent. Not for programs on the user's machine: any of them can listen
/// where another did (RFC 8252 section 8.6).
fn remember(proxy: &ProxyState, headers: &HeaderMap, login: &Login) -> Option<http::HeaderValue> {
    let is_loopback = RedirectUri::parse(&login.redirect_uri)?.is_loopback();
    if is_loopback || proxy.spans.consent.is_zero() {
        return None;
    }
    let mut consents = consents(proxy, headers);
    consents.insert(0, subject(login));
    consents.truncate(REMEMBERED);
    let sealed = proxy.keys.seal(&(proxy.after(proxy.spans.consent), consents), &[CONSENTS])?;
    proxy.cookies.set(CONSENTS, &sealed, proxy.spans.consent)
}

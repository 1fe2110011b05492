//! Consent page: the user decides whether a client may log in.
//!
//! The provider knows all clients as one and does not ask again. Without the consent page, any web
//! page could start a login for its own client. The form contains the sealed login, bound to the
//! browser, so that only this browser can submit it. The login with the provider starts after that,
//! with another cookie.

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};

use super::{
    browser_reply::{error_page, redirect},
    client::{self, Client},
    keys::{digest, random},
    login::{Login, Underway, login_cookie},
    page::{self, ConsentPage},
    params::Params,
    redirect_uri::RedirectUri,
    reply::{ErrorReply, Reply},
    state::ProxyState,
};

/// Maximum number of consents that a browser remembers.
const REMEMBERED: usize = 32;

/// Message for the user if the proxy cannot proceed and must not redirect to the client.
const LATER: &str = "The login is temporarily unavailable. Try again later.";

/// Name of the cookie that identifies the browser.
const BROWSER: &str = "browser";

/// Name of the cookie with the remembered consents.
const CONSENTS: &str = "consents";

/// Shows the consent page, unless this browser remembers the consent.
pub(super) async fn ask(
    proxy: &ProxyState,
    headers: &HeaderMap,
    id: &str,
    client: &Client,
    login: Login,
) -> Reply {
    let Some(uri) = RedirectUri::parse(&login.redirect_uri) else {
        return error_page(
            StatusCode::BAD_REQUEST,
            "The redirect URI of the application is invalid.",
        );
    };
    if consents(proxy, headers).contains(&subject(&login)) {
        return forward(proxy, login).await;
    }
    let known = proxy.cookies.get(headers, BROWSER).filter(|browser| browser.len() == 43);
    let Some(browser) = known.map(str::to_owned).or_else(random) else {
        return error_page(StatusCode::SERVICE_UNAVAILABLE, LATER);
    };
    let cookie = proxy.cookies.set(BROWSER, &browser, proxy.spans.login);
    let sealed = proxy.keys.seal(&login, &["consent", &browser]);
    let (Some(cookie), Some(request)) = (cookie, sealed) else {
        return error_page(StatusCode::SERVICE_UNAVAILABLE, LATER);
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

/// Handles the decision of the user.
pub(super) async fn respond(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let foreign = "This page was not shown in this browser, or it has expired. Start again in your application.";
    let headers = request.headers();
    // Defense in depth: browsers send the origin of a form, and the seal would already reject it.
    let origin = headers.get(header::ORIGIN);
    if origin.is_some_and(|origin| origin.as_bytes() != proxy.origin.as_bytes()) {
        return error_page(StatusCode::FORBIDDEN, foreign);
    }
    let params = Params::read(&String::from_utf8_lossy(request.body()));
    let browser = proxy.cookies.get(headers, BROWSER);
    let login = browser
        .zip(params.get("request"))
        .and_then(|(browser, request)| proxy.keys.open::<Login>(request, &["consent", browser]));
    let Some(login) = login.filter(|login| proxy.now() < login.until) else {
        return error_page(StatusCode::FORBIDDEN, foreign);
    };
    if params.get("decision") != Some("allow") {
        return login
            .refused(&proxy.issuer, ErrorReply::new("access_denied", "the user denied access"));
    }
    let remembered = remember(proxy, headers, &login);
    let mut reply = forward(proxy, login).await;
    reply.headers_mut().extend(remembered.map(|cookie| (header::SET_COOKIE, cookie)));
    reply
}

/// Redirects the browser to the provider, and sets the cookie of the login.
async fn forward(proxy: &ProxyState, login: Login) -> Reply {
    let (Some(state), Some(verifier), Some(nonce)) = (random(), random(), random()) else {
        return login.refused(&proxy.issuer, ErrorReply::UNAVAILABLE);
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
            ErrorReply::new(
                "invalid_request",
                "the parameters of the login are too long for a cookie",
            ),
        ),
        (Err(_), _) => login.refused(&proxy.issuer, ErrorReply::UNAVAILABLE),
    }
}

/// Returns the key of a consent: the client, the redirect URI and the scopes.
fn subject(login: &Login) -> String {
    digest(&format!("{} {} {}", login.client_digest, login.redirect_uri, login.scopes))
}

/// Returns the consents that this browser remembers.
fn consents(proxy: &ProxyState, headers: &HeaderMap) -> Vec<String> {
    let cookie = proxy.cookies.get(headers, CONSENTS);
    let opened = cookie.and_then(|cookie| proxy.keys.open(cookie, &[CONSENTS]));
    let (until, consents): (i64, Vec<String>) = opened.unwrap_or_default();
    if proxy.now() < until { consents } else { Vec::new() }
}

/// Returns a cookie that remembers a consent. Returns `None` for loopback redirects, because any
/// local program can listen on the same port (RFC 8252 section 8.6).
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

//! Pages on which a user logs in at another server, for one principal.
//!
//! The address of the page names the principal, sealed. The page is shown only in a browser in which
//! the person behind the principal has just signed in at the provider: otherwise a user could attach
//! the login of another user to the own principal, or the other way. The user then agrees, and logs in
//! at the other server. Each login at another server needs its own consent.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use outlive_auth::{
    client::{RedirectParams, SecretString},
    server::person_name,
};
use outlive_protocol::Principal;
use serde::{Deserialize, Serialize};

use super::{
    browser_reply::{error_page, redirect},
    connections::ConnectedServer,
    entries::key,
    keys::{digest, random},
    login::login_cookie,
    page::{self, ConnectPage},
    params::Params,
    provider_client::ProviderError,
    reply::Reply,
    state::ProxyState,
};

/// Validity of the address of a page. An address can wait in a conversation.
const ADDRESS: Duration = Duration::from_secs(3_600);

/// Name of the cookie of the person who has signed in.
const PERSON: &str = "person";

/// Name of the cookie that identifies the browser.
const BROWSER: &str = "connecting";

const LATER: &str = "This page is temporarily unavailable. Try again later.";
const EXPIRED: &str =
    "This address is not valid, or it has expired. Use the application again to get another one.";
const FOREIGN: &str =
    "This page was not shown in this browser, or it has expired. Open its address again.";
const OTHER_USER: &str = "This address belongs to another user of this server. \
     Do not continue if you got it from another person.";

/// The principal and the server of a page. Sealed into its address, and into its form.
#[derive(Serialize, Deserialize)]
struct Target {
    name: String,
    /// Key of the principal.
    principal: String,
    /// Person behind the principal.
    person: String,
    /// Expiry in Unix seconds.
    until: i64,
}

/// A sign-in at the provider. Sealed into a cookie of the browser that started it.
#[derive(Serialize, Deserialize)]
pub(super) struct SignIn {
    /// Sealed target of the page.
    request: String,
    verifier: String,
    nonce: String,
    pub(super) until: i64,
}

/// A person who has signed in. Sealed into a cookie.
#[derive(Serialize, Deserialize)]
struct SignedIn {
    person: String,
    until: i64,
}

/// A login at another server. Sealed into a cookie of the browser that started it.
#[derive(Serialize, Deserialize)]
struct Started {
    target: Target,
    pending: String,
}

/// Returns the address of the page for a principal, or `None` for an unknown server, and for a
/// principal that is not a user of the proxy.
pub(super) fn address(proxy: &ProxyState, name: &str, principal: &Principal) -> Option<String> {
    proxy.connections.as_ref()?.server(name)?;
    principal.name()?;
    let target = Target {
        name: name.to_owned(),
        principal: principal.key().to_owned(),
        person: principal.person()?.to_owned(),
        until: proxy.after(ADDRESS),
    };
    Some(page_of(proxy, name, &proxy.keys.seal(&target, &["connect"])?))
}

fn page_of(proxy: &ProxyState, name: &str, request: &str) -> String {
    format!("{}/connect/{name}?request={request}", proxy.issuer)
}

/// Returns the name of the server in a path below the base, and whether it is that of the callback.
pub(super) fn parse_path(path: &str) -> Option<(&str, bool)> {
    let rest = path.strip_prefix("/connect/")?;
    let (name, is_callback) = match rest.strip_suffix("/callback") {
        Some(name) => (name, true),
        None => (rest, false),
    };
    (!name.is_empty() && !name.contains('/')).then_some((name, is_callback))
}

/// Responds to a request for a page.
pub(super) async fn respond(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let path = request.uri().path().strip_prefix(proxy.base.as_str()).unwrap_or_default();
    let Some((name, is_callback)) = parse_path(path) else {
        return error_page(StatusCode::NOT_FOUND, EXPIRED);
    };
    match (is_callback, request.method()) {
        (true, _) => finish(proxy, request, name).await,
        (false, &Method::POST) => decide(proxy, request, name).await,
        (false, _) => show(proxy, request, name).await,
    }
}

/// Shows the consent page. The user signs in before that.
async fn show(proxy: &ProxyState, request: &Request<Bytes>, name: &str) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let sealed = params.get("request").filter(|_| !params.doubled(&["request"]));
    let target = sealed.and_then(|sealed| proxy.keys.open::<Target>(sealed, &["connect"]));
    let target = target.filter(|target| target.name == name && proxy.now() < target.until);
    let (Some(target), Some(sealed)) = (target, sealed) else {
        return error_page(StatusCode::BAD_REQUEST, EXPIRED);
    };
    let Some(server) = server(proxy, name) else {
        return error_page(StatusCode::NOT_FOUND, EXPIRED);
    };
    match person(proxy, request.headers()) {
        Some(person) if person == target.person => consent(proxy, request, &target, &server),
        _ => sign_in(proxy, sealed).await,
    }
}

/// Redirects the browser to the provider, and sets the cookie of the sign-in.
async fn sign_in(proxy: &ProxyState, request: &str) -> Reply {
    let (Some(state), Some(verifier), Some(nonce)) = (random(), random(), random()) else {
        return error_page(StatusCode::SERVICE_UNAVAILABLE, LATER);
    };
    let page = proxy.provider.login_page(&proxy.callback(), &state, &verifier, &nonce).await;
    let until = proxy.after(proxy.spans.login);
    let sign_in = SignIn { request: request.to_owned(), verifier, nonce, until };
    let sealed = proxy.keys.seal(&sign_in, &["sign-in", &state]);
    let cookie = sealed
        .and_then(|sealed| proxy.cookies.set(&login_cookie(&state), &sealed, proxy.spans.login));
    match (page, cookie) {
        (Ok(page), Some(cookie)) => with_cookie(redirect(&page), cookie),
        _ => error_page(StatusCode::SERVICE_UNAVAILABLE, LATER),
    }
}

/// Opens the cookie of a sign-in.
pub(super) fn open_sign_in(proxy: &ProxyState, cookie: &str, state: &str) -> Option<SignIn> {
    proxy.keys.open(cookie, &["sign-in", state])
}

/// Handles the callback of the provider after a sign-in.
pub(super) async fn signed_in(
    proxy: &ProxyState,
    params: &Params,
    state: &str,
    sign_in: &SignIn,
) -> Reply {
    let Some(target) = proxy.keys.open::<Target>(&sign_in.request, &["connect"]) else {
        return error_page(StatusCode::BAD_REQUEST, EXPIRED);
    };
    let person = match identify(proxy, params, state, sign_in).await {
        Ok(person) => person,
        Err((status, why)) => return error_page(status, why),
    };
    if person != target.person {
        tracing::warn!(
            upstream = target.name,
            "rejecting a login: its address belongs to another user"
        );
        return error_page(StatusCode::FORBIDDEN, OTHER_USER);
    }
    let signed_in = SignedIn { person, until: proxy.after(proxy.spans.login) };
    let cookie = proxy.keys.seal(&signed_in, &[PERSON]);
    let cookie = cookie.and_then(|sealed| proxy.cookies.set(PERSON, &sealed, proxy.spans.login));
    match cookie {
        Some(cookie) => {
            with_cookie(redirect(&page_of(proxy, &target.name, &sign_in.request)), cookie)
        }
        None => error_page(StatusCode::SERVICE_UNAVAILABLE, LATER),
    }
}

/// Returns the person of a callback.
async fn identify(
    proxy: &ProxyState,
    params: &Params,
    state: &str,
    sign_in: &SignIn,
) -> Result<String, (StatusCode, &'static str)> {
    const FAILED: (StatusCode, &str) =
        (StatusCode::BAD_REQUEST, "The sign-in failed. Open the address of the page again.");
    let unavailable = (StatusCode::SERVICE_UNAVAILABLE, LATER);
    let map = |error| match error {
        ProviderError::Refused => FAILED,
        ProviderError::Unavailable => unavailable,
    };
    let known = proxy.provider.endpoints().await.map_err(map)?;
    let is_other = match (params.get("iss"), &known.issuer) {
        (Some(said), Some(issuer)) => said != issuer,
        _ => false,
    };
    let code = params.get("code").filter(|_| !params.doubled(&["code", "error", "iss"]));
    let code = code.filter(|_| !is_other && params.get("error").is_none()).ok_or(FAILED)?;
    let SignIn { verifier, nonce, .. } = sign_in;
    let exchanged = proxy.provider.exchange(&proxy.callback(), code, verifier, nonce).await;
    // The tokens of the provider are dropped: only the identity is needed.
    let (_, identity) = exchanged.map_err(map)?;
    let used = key("used", state);
    let is_first = proxy.logins.put_if_absent(&used, String::new(), proxy.spans.login).await;
    match is_first {
        Ok(true) => {}
        Ok(false) => return Err(FAILED),
        Err(error) => {
            tracing::warn!(%error, "the login store failed");
            return Err(unavailable);
        }
    }
    if proxy.allow_user.as_ref().is_some_and(|allows| !allows(&identity)) {
        return Err((StatusCode::FORBIDDEN, "You are not permitted to use this server."));
    }
    Ok(person_name(&proxy.issuer, &identity.subject, identity.tenant.as_deref()))
}

/// Shows the consent page, whose form only this browser can submit.
fn consent(
    proxy: &ProxyState,
    request: &Request<Bytes>,
    target: &Target,
    server: &ConnectedServer,
) -> Reply {
    let known = proxy.cookies.get(request.headers(), BROWSER).filter(|known| known.len() == 43);
    let Some(browser) = known.map(str::to_owned).or_else(random) else {
        return error_page(StatusCode::SERVICE_UNAVAILABLE, LATER);
    };
    let cookie = proxy.cookies.set(BROWSER, &browser, proxy.spans.login);
    let form = Target {
        name: target.name.clone(),
        principal: target.principal.clone(),
        person: target.person.clone(),
        until: proxy.after(proxy.spans.login),
    };
    let sealed = proxy.keys.seal(&form, &["connect-form", &browser]);
    let (Some(cookie), Some(sealed)) = (cookie, sealed) else {
        return error_page(StatusCode::SERVICE_UNAVAILABLE, LATER);
    };
    let html = page::connect(&ConnectPage {
        server: &proxy.name,
        name: &target.name,
        host: &server.host,
        scopes: &server.scopes,
        person: &target.person,
        action: &format!("{}/connect/{}", proxy.base, target.name),
        request: &sealed,
    });
    with_cookie(page::reply(StatusCode::OK, &html), cookie)
}

/// Handles the decision of the user.
async fn decide(proxy: &ProxyState, request: &Request<Bytes>, name: &str) -> Reply {
    let headers = request.headers();
    // Defense in depth: browsers send the origin of a form, and the seal would already reject it.
    let origin = headers.get(header::ORIGIN);
    if origin.is_some_and(|origin| origin.as_bytes() != proxy.origin.as_bytes()) {
        return error_page(StatusCode::FORBIDDEN, FOREIGN);
    }
    let params = Params::read(&String::from_utf8_lossy(request.body()));
    let browser = proxy.cookies.get(headers, BROWSER);
    let target = browser.zip(params.get("request")).and_then(|(browser, sealed)| {
        proxy.keys.open::<Target>(sealed, &["connect-form", browser])
    });
    let target = target.filter(|target| {
        let is_signed_in = person(proxy, headers).is_some_and(|person| person == target.person);
        is_signed_in && target.name == name && proxy.now() < target.until
    });
    let Some(target) = target else { return error_page(StatusCode::FORBIDDEN, FOREIGN) };
    if params.get("decision") != Some("allow") {
        return page::reply(StatusCode::OK, &page::not_connected(&target.name));
    }
    start(proxy, target).await
}

/// Redirects the browser to the login page of the other server.
async fn start(proxy: &ProxyState, target: Target) -> Reply {
    let principal = Principal::from_key(&target.principal);
    let client = proxy
        .connections
        .as_ref()
        .zip(principal)
        .and_then(|(connections, principal)| connections.client(&target.name, &principal));
    let Some(client) = client else { return error_page(StatusCode::NOT_FOUND, EXPIRED) };
    let started = match client.start_login(&callback_of(proxy, &target.name)).await {
        Ok(started) => started,
        Err(error) => {
            tracing::warn!(%error, upstream = target.name, "a user cannot log in");
            return error_page(StatusCode::BAD_GATEWAY, &format!("The login failed: {error}."));
        }
    };
    let content = Started { target, pending: started.pending.expose().to_owned() };
    let sealed = proxy.keys.seal(&content, &["connect-started", &started.state]);
    let cookie = sealed.and_then(|sealed| {
        proxy.cookies.set(&started_cookie(&started.state), &sealed, proxy.spans.login)
    });
    match cookie {
        Some(cookie) => with_cookie(redirect(&started.url), cookie),
        None => error_page(StatusCode::SERVICE_UNAVAILABLE, LATER),
    }
}

/// Finishes the login at the other server.
async fn finish(proxy: &ProxyState, request: &Request<Bytes>, name: &str) -> Reply {
    let query = request.uri().query().unwrap_or_default();
    let params = Params::read(query);
    let state = params.get("state").filter(|_| !params.doubled(&["state"])).unwrap_or_default();
    let cookie = started_cookie(state);
    let sealed = proxy.cookies.get(request.headers(), &cookie);
    let started =
        sealed.and_then(|sealed| proxy.keys.open::<Started>(sealed, &["connect-started", state]));
    let started =
        started.filter(|started| started.target.name == name && proxy.now() < started.target.until);
    let Some(Started { target, pending }) = started else {
        return error_page(StatusCode::BAD_REQUEST, FOREIGN);
    };
    let mut reply = match connect(proxy, &target, &pending, query).await {
        Ok(()) => page::reply(StatusCode::OK, &page::connected(&target.name)),
        Err(why) => error_page(StatusCode::BAD_GATEWAY, &why),
    };
    reply.headers_mut().extend(proxy.cookies.unset(&cookie).map(|gone| (header::SET_COOKIE, gone)));
    reply
}

/// Stores the tokens of the login.
async fn connect(
    proxy: &ProxyState,
    target: &Target,
    pending: &str,
    query: &str,
) -> Result<(), String> {
    let principal = Principal::from_key(&target.principal);
    let (connections, principal) =
        proxy.connections.as_ref().zip(principal).ok_or_else(|| EXPIRED.to_owned())?;
    let client = connections.client(&target.name, &principal).ok_or_else(|| EXPIRED.to_owned())?;
    let redirect = RedirectParams::from_query(query);
    let finished = client.finish_login(&SecretString::new(pending), &redirect).await;
    finished.map_err(|error| {
        tracing::warn!(%error, upstream = target.name, "a user cannot log in");
        format!("The login failed: {error}.")
    })?;
    connections.connected(&target.name, &principal);
    Ok(())
}

fn server(proxy: &ProxyState, name: &str) -> Option<ConnectedServer> {
    proxy.connections.as_ref()?.server(name)
}

/// Returns the person who has signed in with this browser.
fn person(proxy: &ProxyState, headers: &HeaderMap) -> Option<String> {
    let cookie = proxy.cookies.get(headers, PERSON)?;
    let signed_in: SignedIn = proxy.keys.open(cookie, &[PERSON])?;
    (proxy.now() < signed_in.until).then_some(signed_in.person)
}

fn callback_of(proxy: &ProxyState, name: &str) -> String {
    format!("{}/connect/{name}/callback", proxy.issuer)
}

/// Returns the name of the cookie of a login. A browser may have several.
fn started_cookie(state: &str) -> String {
    format!("connect-{}", &digest(state)[..16])
}

fn with_cookie(mut reply: Reply, cookie: HeaderValue) -> Reply {
    reply.headers_mut().append(header::SET_COOKIE, cookie);
    reply
}

//! Callback endpoint: the provider redirects the user back.
//!
//! The browser must send the cookie of this login. The cookie shows that the user consented in this
//! browser, and each callback is accepted once.

use bytes::Bytes;
use http::{Request, StatusCode, header};

use super::{
    browser_reply::error_page,
    connect,
    entries::key,
    grant,
    login::{Underway, login_cookie},
    params::Params,
    provider_client::ProviderError,
    reply::{ErrorReply, Reply},
    state::ProxyState,
};

const EXPIRED: &str = "This login was not started in this browser, or it has expired. Start again in your application.";

const DENIED: ErrorReply =
    ErrorReply::new("access_denied", "this user is not permitted to use this server");

pub(super) async fn callback(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let state = params.get("state").filter(|_| !params.doubled(&["state"])).unwrap_or_default();
    let name = login_cookie(state);
    let cookie = proxy.cookies.get(request.headers(), &name);
    if let Some(sign_in) = cookie.and_then(|cookie| connect::open_sign_in(proxy, cookie, state)) {
        let mut reply = match proxy.now() < sign_in.until {
            true => connect::signed_in(proxy, &params, state, &sign_in).await,
            false => error_page(StatusCode::BAD_REQUEST, EXPIRED),
        };
        let gone = proxy.cookies.unset(&name);
        reply.headers_mut().extend(gone.map(|gone| (header::SET_COOKIE, gone)));
        return reply;
    }
    let underway = cookie.and_then(|cookie| proxy.keys.open::<Underway>(cookie, &["login", state]));
    let Some(underway) = underway.filter(|underway| proxy.now() < underway.login.until) else {
        return error_page(StatusCode::BAD_REQUEST, EXPIRED);
    };
    let mut reply = match finished(proxy, &params, state, &underway).await {
        Ok(code) => underway.login.back(&proxy.issuer, [("code", code.as_str())]),
        Err(error) => underway.login.refused(&proxy.issuer, error),
    };
    reply.headers_mut().extend(proxy.cookies.unset(&name).map(|gone| (header::SET_COOKIE, gone)));
    reply
}

/// Checks the callback, and returns the code for the client.
async fn finished(
    proxy: &ProxyState,
    params: &Params,
    state: &str,
    underway: &Underway,
) -> Result<String, ErrorReply> {
    if params.doubled(&["code", "error", "iss"]) {
        return Err(ErrorReply::new(
            "server_error",
            "the response of the provider has a duplicate parameter",
        ));
    }
    let known = proxy.provider.endpoints().await.map_err(error_reply)?;
    if let (Some(said), Some(issuer)) = (params.get("iss"), &known.issuer)
        && said != issuer
    {
        return Err(ErrorReply::new("server_error", "the response is from another provider"));
    }
    if let Some(error) = params.get("error") {
        return Err(forwarded(error));
    }
    let code = params.get("code");
    let code = code.ok_or(ErrorReply::new("server_error", "the provider returned no code"))?;
    let Underway { login, verifier, nonce } = underway;
    let exchanged = proxy.provider.exchange(&proxy.callback(), code, verifier, nonce).await;
    let (tokens, identity) = exchanged.map_err(error_reply)?;
    // The entry is stored after the login, so that only a user who can log in causes one.
    let used = key("used", state);
    if !proxy.logins.put_if_absent(&used, String::new(), proxy.spans.login).await? {
        return Err(ErrorReply::new("server_error", "this response was already used"));
    }
    if proxy.allow_user.as_ref().is_some_and(|allows| !allows(&identity)) {
        tracing::info!(subject = %identity.subject.escape_debug(), "rejecting a login: the user is not permitted");
        proxy.provider.revoke(&tokens).await;
        return Err(DENIED);
    }
    match proxy.scopes.granted(&identity, &login.scopes) {
        Ok(scopes) => grant::create(proxy, login, identity, scopes, &tokens).await,
        Err(error) => {
            proxy.provider.revoke(&tokens).await;
            Err(error)
        }
    }
}

/// Maps an error of the provider to a fixed description, so that the provider's text does not reach
/// the client.
fn forwarded(error: &str) -> ErrorReply {
    match error {
        "access_denied" | "consent_required" => {
            ErrorReply::new("access_denied", "the identity provider or the user denied access")
        }
        "temporarily_unavailable" => ErrorReply::UNAVAILABLE,
        _ => ErrorReply::new("server_error", "the identity provider returned an error"),
    }
}

fn error_reply(error: ProviderError) -> ErrorReply {
    match error {
        ProviderError::Refused => {
            ErrorReply::new("server_error", "the identity provider returned an error")
        }
        ProviderError::Unavailable => ErrorReply::UNAVAILABLE,
    }
}

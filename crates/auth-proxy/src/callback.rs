//! Callback endpoint: the provider redirects the user back.
//!
//! The browser must send the cookie of this login. The cookie shows that the user consented in this
//! browser, and each callback is accepted once.

use bytes::Bytes;
use http::{Request, StatusCode, header};

use super::{
    browser_reply::error_page,
    entries::key,
    grant,
    login::{Underway, login_cookie},
    params::Params,
    provider_client::ProviderError,
    reply::{Fault, Reply},
    state::ProxyState,
};

const DENIED: Fault = Fault::new("access_denied", "this user is not permitted to use this server");

pub(super) async fn callback(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let state = params.get("state").filter(|_| !params.doubled(&["state"])).unwrap_or_default();
    let name = login_cookie(state);
    let cookie = proxy.cookies.get(request.headers(), &name);
    let underway = cookie.and_then(|cookie| proxy.keys.open::<Underway>(cookie, &["login", state]));
    let Some(underway) = underway.filter(|underway| proxy.now() < underway.login.until) else {
        let why = "This login was not started in this browser, or it has expired. Start again in your application.";
        return error_page(StatusCode::BAD_REQUEST, why);
    };
    let mut reply = match finished(proxy, &params, state, &underway).await {
        Ok(code) => underway.login.back(&proxy.issuer, [("code", code.as_str())]),
        Err(fault) => underway.login.refused(&proxy.issuer, fault),
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
) -> Result<String, Fault> {
    if params.doubled(&["code", "error", "iss"]) {
        return Err(Fault::new(
            "server_error",
            "the response of the provider has a duplicate parameter",
        ));
    }
    let known = proxy.provider.endpoints().await.map_err(fault)?;
    if let (Some(said), Some(issuer)) = (params.get("iss"), &known.issuer)
        && said != issuer
    {
        return Err(Fault::new("server_error", "the response is from another provider"));
    }
    if let Some(error) = params.get("error") {
        return Err(forwarded(error));
    }
    let code = params.get("code");
    let code = code.ok_or(Fault::new("server_error", "the provider returned no code"))?;
    let Underway { login, verifier, nonce } = underway;
    let exchanged = proxy.provider.exchange(&proxy.callback(), code, verifier, nonce).await;
    let (tokens, identity) = exchanged.map_err(fault)?;
    // The entry is stored after the login, so that only a user who can log in causes one.
    let used = key("used", state);
    if !proxy.logins.put_if_absent(&used, String::new(), proxy.spans.login).await? {
        return Err(Fault::new("server_error", "this response was already used"));
    }
    if proxy.allow_user.as_ref().is_some_and(|allows| !allows(&identity)) {
        tracing::info!(subject = %identity.subject.escape_debug(), "rejecting a login: the user is not permitted");
        proxy.provider.revoke(&tokens).await;
        return Err(DENIED);
    }
    match proxy.scopes.granted(&identity, &login.scopes) {
        Ok(scopes) => grant::create(proxy, login, identity, scopes, &tokens).await,
        Err(fault) => {
            proxy.provider.revoke(&tokens).await;
            Err(fault)
        }
    }
}

/// Maps an error of the provider to a fixed description, so that the provider's text does not reach
/// the client.
fn forwarded(error: &str) -> Fault {
    match error {
        "access_denied" | "consent_required" => {
            Fault::new("access_denied", "the identity provider or the user denied access")
        }
        "temporarily_unavailable" => Fault::UNAVAILABLE,
        _ => Fault::new("server_error", "the identity provider returned an error"),
    }
}

fn fault(error: ProviderError) -> Fault {
    match error {
        ProviderError::Refused => {
            Fault::new("server_error", "the identity provider returned an error")
        }
        ProviderError::Unavailable => Fault::UNAVAILABLE,
    }
}

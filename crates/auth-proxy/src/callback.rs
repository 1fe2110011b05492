//! The provider sends somebody back.
//!
//! The browser has to bring the cookie of the login that this is the answer to: so it is the browser
//! in which somebody has consented, and the answer is taken once.

use bytes::Bytes;
use http::{Request, StatusCode, header};

use super::{
    browser_reply::told,
    entries::key,
    grant,
    login::{Underway, login_cookie},
    params::Params,
    provider_client::ProviderError,
    reply::{Fault, Reply},
    state::ProxyState,
};

const DENIED: Fault = Fault::new("access_denied", "this user may not use this server");

pub(super) async fn callback(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let state = params.get("state").filter(|_| !params.doubled(&["state"])).unwrap_or_default();
    let name = login_cookie(state);
    let cookie = proxy.cookies.get(request.headers(), &name);
    let underway = cookie.and_then(|cookie| proxy.keys.open::<Underway>(cookie, &["login", state]));
    let Some(underway) = underway.filter(|underway| proxy.now() < underway.login.until) else {
        let why = "This login was not begun in this browser, or too long ago. Begin again in your application.";
        return told(StatusCode::BAD_REQUEST, why);
    };
    let mut reply = match finished(proxy, &params, state, &underway).await {
        Ok(code) => underway.login.back(&proxy.issuer, [("code", code.as_str())]),
        Err(fault) => underway.login.refused(&proxy.issuer, fault),
    };
    reply.headers_mut().extend(proxy.cookies.unset(&name).map(|gone| (header::SET_COOKIE, gone)));
    reply
}

/// The code for the client, if all is as it should be.
async fn finished(
    proxy: &ProxyState,
    params: &Params,
    state: &str,
    underway: &Underway,
) -> Result<String, Fault> {
    if params.doubled(&["code", "error", "iss"]) {
        return Err(Fault::new("server_error", "the answer of the provider cannot be read"));
    }
    let known = proxy.provider.endpoints().await.map_err(fault)?;
    if let (Some(said), Some(issuer)) = (params.get("iss"), &known.issuer)
        && said != issuer
    {
        return Err(Fault::new("server_error", "the answer is of another provider"));
    }
    if let Some(error) = params.get("error") {
        return Err(forwarded(error));
    }
    let code = params.get("code");
    let code = code.ok_or(Fault::new("server_error", "the provider has sent no code"))?;
    let Underway { login, verifier, nonce } = underway;
    let exchanged = proxy.provider.exchange(&proxy.callback(), code, verifier, nonce).await;
    let (tokens, identity) = exchanged.map_err(fault)?;
    // Only now: it takes somebody who can log in to have anything remembered.
    let used = key("used", state);
    if !proxy.logins.put_if_absent(&used, String::new(), proxy.spans.login).await? {
        return Err(Fault::new("server_error", "this answer was used before"));
    }
    if proxy.allow_user.as_ref().is_some_and(|allows| !allows(&identity)) {
        tracing::info!(subject = %identity.subject.escape_debug(), "somebody was not let in");
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

/// What the provider says, in words of ours: nobody but us is to say anything to the client.
fn forwarded(error: &str) -> Fault {
    match error {
        "access_denied" | "consent_required" => {
            Fault::new("access_denied", "the identity provider has refused, or the user has")
        }
        "temporarily_unavailable" => Fault::UNAVAILABLE,
        _ => Fault::new("server_error", "the identity provider has refused"),
    }
}

fn fault(error: ProviderError) -> Fault {
    match error {
        ProviderError::Refused => Fault::new("server_error", "the identity provider has refused"),
        ProviderError::Unavailable => Fault::UNAVAILABLE,
    }
}

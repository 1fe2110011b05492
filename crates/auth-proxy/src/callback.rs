//! The provider sends somebody back.
//!
//! The browser has to bring the cookie of the login that this is the answer to: so it is the browser
//! in which somebody has consented, and the answer is taken once.

use bytes::Bytes;
use http::{Request, StatusCode, header};

use super::{
    authorize::Login,
    consent::{Underway, login_cookie},
    grant::key,
    params::Params,
    provider::Trouble,
    proxy::ProxyState,
    reply::{Fault, Reply, told},
};

const DENIED: Fault = Fault::new("access_denied", "this user may not use this server");

pub(super) async fn callback(office: &ProxyState, request: &Request<Bytes>) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let state = params.get("state").filter(|_| !params.doubled(&["state"])).unwrap_or_default();
    let name = login_cookie(state);
    let cookie = office.cookies.get(request.headers(), &name);
    let underway =
        cookie.and_then(|cookie| office.keys.open::<Underway>(cookie, &["login", state]));
    let Some(underway) = underway.filter(|underway| office.now() < underway.login.until) else {
        let why = "This login was not begun in this browser, or too long ago. Begin again in your application.";
        return told(StatusCode::BAD_REQUEST, why);
    };
    let mut reply = match finished(office, &params, state, &underway).await {
        Ok(code) => underway.login.back(office, [("code", code.as_str())]),
        Err(fault) => underway.login.refused(office, fault),
    };
    reply.headers_mut().extend(office.cookies.unset(&name).map(|gone| (header::SET_COOKIE, gone)));
    reply
}

/// The code for the client, if all is as it should be.
async fn finished(
    office: &ProxyState,
    params: &Params,
    state: &str,
    underway: &Underway,
) -> Result<String, Fault> {
    if params.doubled(&["code", "error", "iss"]) {
        return Err(Fault::new("server_error", "the answer of the provider cannot be read"));
    }
    let known = office.provider.endpoints().await.map_err(fault)?;
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
    let exchanged = office.provider.exchange(&office.callback(), code, verifier, nonce).await;
    let (tokens, identity) = exchanged.map_err(fault)?;
    // Only now: it takes somebody who can log in to have anything remembered.
    let used = key("used", state);
    if !office.logins.put_if_absent(&used, String::new(), office.spans.login).await? {
        return Err(Fault::new("server_error", "this answer was used before"));
    }
    if office.allow_user.as_ref().is_some_and(|allows| !allows(&identity)) {
        tracing::info!(subject = %identity.subject.escape_debug(), "somebody was not let in");
        office.provider.revoke(&tokens).await;
        return Err(DENIED);
    }
    match office.scopes.granted(&identity, &login.scopes) {
        Ok(scopes) => Login::grant(login, office, identity, scopes, &tokens).await,
        Err(fault) => {
            office.provider.revoke(&tokens).await;
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

fn fault(trouble: Trouble) -> Fault {
    match trouble {
        Trouble::Refused => Fault::new("server_error", "the identity provider has refused"),
        Trouble::Unavailable => Fault::UNAVAILABLE,
    }
}

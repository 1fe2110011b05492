//! A client sends somebody here to log in.
//!
//! A mistake in the request is shown to the person, on a page. The browser is not redirected before the
//! person has consented: anybody can register a client with any place, so a redirect here would lead
//! wherever the author of the link wants (RFC 9700 section 4.11.2). If client and place fit together,
//! the page has a link that brings the error to the client.

use std::net::IpAddr;

use bytes::Bytes;
use http::{Request, StatusCode};

use super::{
    browser_reply::{mistake, told},
    client::{self, Client},
    consent,
    keys::digest,
    login::Login,
    params::Params,
    redirect_uri::RedirectUri,
    reply::{Fault, Reply},
    state::ProxyState,
};

/// The longest word of a client's for its login. It stands in a cookie.
const LONGEST_STATE: usize = 1_024;

pub(super) async fn authorize(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let caller = request.extensions().get::<IpAddr>().copied();
    let (id, client) = match known_client(proxy, &params, caller).await {
        Ok(known) => known,
        Err(why) => return told(StatusCode::BAD_REQUEST, why),
    };
    let Some(uri) = params.get("redirect_uri").and_then(|asked| client.redirect(asked)) else {
        let why = "The application wants the answer at a place that is not its own.";
        return told(StatusCode::BAD_REQUEST, why);
    };
    match wanted(proxy, &params, id, uri) {
        Ok(login) => consent::ask(proxy, request.headers(), id, &client, login).await,
        Err(fault) => {
            let state = params.get("state").filter(|_| !params.doubled(&["state"]));
            mistake(fault, uri, state, &proxy.issuer)
        }
    }
}

async fn known_client<'p>(
    proxy: &ProxyState,
    params: &'p Params,
    caller: Option<IpAddr>,
) -> Result<(&'p str, Client), &'static str> {
    let unknown = "The application is not known here. It has to register again.";
    if params.doubled(&["client_id", "redirect_uri"]) {
        return Err("The application asks for two things at once.");
    }
    let id = params.get("client_id").ok_or(unknown)?;
    let client = match client::is_document(id) {
        true => proxy.documents.read(id, caller).await?,
        false => Client::open(&proxy.keys, id).ok_or(unknown)?,
    };
    Ok((id, client))
}

/// Reads what is wanted of a client whose answers may go to `uri`.
fn wanted(
    proxy: &ProxyState,
    params: &Params,
    id: &str,
    uri: RedirectUri<'_>,
) -> Result<Login, Fault> {
    const ONCE: &[&str] = &[
        "response_type",
        "response_mode",
        "state",
        "scope",
        "code_challenge",
        "code_challenge_method",
        "request",
        "request_uri",
    ];
    let invalid = |why| Fault::new("invalid_request", why);
    if params.doubled(ONCE) {
        return Err(invalid("a parameter is there twice"));
    }
    if params.get("request").is_some() || params.get("request_uri").is_some() {
        return Err(Fault::new("request_not_supported", "send plain parameters"));
    }
    if params.get("response_type") != Some("code") {
        return Err(Fault::new("unsupported_response_type", "`response_type` must be `code`"));
    }
    if params.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(invalid("`response_mode` must be `query`"));
    }
    let state = params.get("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| state.len() > LONGEST_STATE) {
        return Err(invalid("`state` is too long"));
    }
    let challenge = params.get("code_challenge").filter(|challenge| is_hash(challenge));
    // Nothing said means `plain`, which protects nobody.
    let (Some(challenge), Some("S256")) = (challenge, params.get("code_challenge_method")) else {
        return Err(invalid("a `code_challenge` with the method S256 is needed"));
    };
    proxy.check_resource(params)?;
    Ok(Login {
        client: client::short_name(id),
        client_digest: digest(id),
        redirect_uri: uri.as_str().to_owned(),
        state,
        challenge: challenge.to_owned(),
        scopes: proxy.scopes.asked(params.get("scope"))?,
        until: proxy.after(proxy.spans.login),
    })
}

/// Whether a text is a SHA-256 hash in base64url.
fn is_hash(text: &str) -> bool {
    outlive_auth::jose::decode_base64url(text).is_some_and(|hash| hash.len() == 32)
}

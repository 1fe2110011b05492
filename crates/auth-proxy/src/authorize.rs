//! Authorization endpoint: a client sends a user here to log in.
//!
//! Errors in the request are shown to the user on a page. The browser is not redirected before the
//! user has consented: any client can register any redirect URI, so an immediate redirect would be
//! an open redirector (RFC 9700 section 4.11.2). If client and redirect URI match, the page has a
//! link that returns the error to the client.

use std::net::IpAddr;

use bytes::Bytes;
use http::{Request, StatusCode};

use super::{
    browser_reply::{error_page, mistake},
    client::{self, Client},
    consent,
    keys::digest,
    login::Login,
    params::Params,
    redirect_uri::RedirectUri,
    reply::{ErrorReply, Reply},
    state::ProxyState,
};

/// Maximum length of a client's `state`, which is stored in a cookie.
const LONGEST_STATE: usize = 1_024;

pub(super) async fn authorize(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    let params = Params::read(request.uri().query().unwrap_or_default());
    let caller = request.extensions().get::<IpAddr>().copied();
    let (id, client) = match known_client(proxy, &params, caller).await {
        Ok(known) => known,
        Err(why) => return error_page(StatusCode::BAD_REQUEST, why),
    };
    let Some(uri) = params.get("redirect_uri").and_then(|asked| client.redirect(asked)) else {
        let why = "The redirect URI of the application is not registered.";
        return error_page(StatusCode::BAD_REQUEST, why);
    };
    match parse_login(proxy, &params, id, uri) {
        Ok(login) => consent::ask(proxy, request.headers(), id, &client, login).await,
        Err(error) => {
            let state = params.get("state").filter(|_| !params.doubled(&["state"]));
            mistake(error, uri, state, &proxy.issuer)
        }
    }
}

async fn known_client<'p>(
    proxy: &ProxyState,
    params: &'p Params,
    caller: Option<IpAddr>,
) -> Result<(&'p str, Client), &'static str> {
    let unknown = "The application is not registered. It must register again.";
    if params.doubled(&["client_id", "redirect_uri"]) {
        return Err("The request of the application has a duplicate parameter.");
    }
    let id = params.get("client_id").ok_or(unknown)?;
    let client = match client::is_document(id) {
        true => proxy.documents.read(id, caller).await?,
        false => Client::open(&proxy.keys, id).ok_or(unknown)?,
    };
    Ok((id, client))
}

/// Parses the authorization request of a client whose redirect URI is `uri`.
fn parse_login(
    proxy: &ProxyState,
    params: &Params,
    id: &str,
    uri: RedirectUri<'_>,
) -> Result<Login, ErrorReply> {
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
    let invalid = |why| ErrorReply::new("invalid_request", why);
    if params.doubled(ONCE) {
        return Err(invalid("duplicate parameter"));
    }
    if params.get("request").is_some() || params.get("request_uri").is_some() {
        return Err(ErrorReply::new("request_not_supported", "send plain parameters"));
    }
    if params.get("response_type") != Some("code") {
        return Err(ErrorReply::new("unsupported_response_type", "`response_type` must be `code`"));
    }
    if params.get("response_mode").is_some_and(|mode| mode != "query") {
        return Err(invalid("`response_mode` must be `query`"));
    }
    let state = params.get("state").map(str::to_owned);
    if state.as_ref().is_some_and(|state| state.len() > LONGEST_STATE) {
        return Err(invalid("`state` is too long"));
    }
    let challenge = params.get("code_challenge").filter(|challenge| is_hash(challenge));
    // Without a method, the default is `plain`, which does not protect the code.
    let (Some(challenge), Some("S256")) = (challenge, params.get("code_challenge_method")) else {
        return Err(invalid("a `code_challenge` with the method S256 is required"));
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

/// Returns whether a text is a SHA-256 hash in base64url.
fn is_hash(text: &str) -> bool {
    outlive_auth::jose::decode_base64url(text).is_some_and(|hash| hash.len() == 32)
}

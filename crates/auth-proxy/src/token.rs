//! Gives tokens: for a code, and for a refresh token, which is used up by that (RFC 6749, OAuth 2.1).

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use serde::Serialize;

use super::{
    client::{self, Client},
    grant::{Taken, USED},
    keys::random,
    params::Params,
    proxy::ProxyState,
    reply::{Fault, Reply, json},
};

/// What an access token says (RFC 9068).
#[derive(Serialize)]
struct Said<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    client_id: &'a str,
    scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a str>,
    iat: i64,
    exp: i64,
    jti: String,
}

#[derive(Serialize)]
struct Given {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    refresh_token: String,
    scope: String,
}

pub(super) async fn token(office: &Arc<ProxyState>, request: &Request<Bytes>) -> Reply {
    match given(office, request).await {
        Ok(given) => json(StatusCode::OK, &given),
        Err(fault) => fault.reply(),
    }
}

async fn given(office: &Arc<ProxyState>, request: &Request<Bytes>) -> Result<Given, Fault> {
    let params = form(request)?;
    let client = client_id(office, &params)?;
    office.check_resource(&params)?;
    let need =
        |name| params.get(name).ok_or(Fault::new("invalid_request", "a parameter is missing"));
    let ticket = match params.get("grant_type") {
        Some("authorization_code") => {
            let ticket = office.code(need("code")?, client, need("code_verifier")?);
            let ticket = ticket.ok_or(USED)?;
            // The verifier has shown whose it is. Clients of OAuth 2.0 say this as well.
            let said = params.get("redirect_uri");
            if said.is_some() && said != ticket.redirect_uri.as_deref() {
                return Err(USED);
            }
            ticket
        }
        Some("refresh_token") => {
            office.refresh_token(need("refresh_token")?, client).ok_or(USED)?
        }
        _ => {
            return Err(Fault::new(
                "unsupported_grant_type",
                "a code or a refresh token is needed",
            ));
        }
    };
    let taken = office.take(&ticket, client, params.get("scope")).await?;
    let Taken { grant, scopes, next: refresh_token } = taken;
    let exp = office.after(office.spans.access);
    let access_token = office.keys.sign(&Said {
        iss: &office.issuer,
        sub: &grant.subject,
        aud: office.resource.as_str(),
        client_id: &grant.client,
        scope: scopes.to_string(),
        tenant: grant.tenant.as_deref(),
        iat: office.now(),
        exp,
        jti: random().ok_or(Fault::UNAVAILABLE)?,
    });
    Ok(Given {
        access_token: access_token.ok_or(Fault::UNAVAILABLE)?,
        token_type: "Bearer",
        expires_in: office.spans.access.as_secs(),
        refresh_token,
        scope: scopes.to_string(),
    })
}

/// The form of a request.
pub(super) fn form(request: &Request<Bytes>) -> Result<Params, Fault> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(Fault::new("invalid_request", "send application/x-www-form-urlencoded"));
    }
    let params = Params::read(&String::from_utf8_lossy(request.body()));
    const ONCE: &[&str] = &[
        "client_id",
        "code",
        "code_verifier",
        "grant_type",
        "redirect_uri",
        "refresh_token",
        "scope",
        "token",
    ];
    match params.doubled(ONCE) {
        true => Err(Fault::new("invalid_request", "a parameter is there twice")),
        false => Ok(params),
    }
}

/// Who asks. What it brings opens for that client alone, so this is for those whose id has become
/// worthless: they are told to register again.
pub(super) fn client_id<'p>(office: &ProxyState, params: &'p Params) -> Result<&'p str, Fault> {
    let id = params.get("client_id");
    let is_known = |id: &&str| client::is_document(id) || Client::open(&office.keys, id).is_some();
    id.filter(is_known).ok_or(Fault::new("invalid_client", "this client is not known; register"))
}

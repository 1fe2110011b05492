//! Token endpoint: exchanges a code or a refresh token (RFC 6749, OAuth 2.1). A refresh token is
//! valid once.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, StatusCode};
use serde::Serialize;

use super::{
    grant::{self, Taken},
    keys::random,
    reply::{ErrorReply, Reply, json},
    state::ProxyState,
    token_request::{client_id, form},
};

/// Claims of an access token (RFC 9068).
#[derive(Serialize)]
struct AccessToken<'a> {
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
struct TokenReply {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    refresh_token: String,
    scope: String,
}

pub(super) async fn token(proxy: &Arc<ProxyState>, request: &Request<Bytes>) -> Reply {
    match given(proxy, request).await {
        Ok(given) => json(StatusCode::OK, &given),
        Err(error) => error.reply(),
    }
}

async fn given(
    proxy: &Arc<ProxyState>,
    request: &Request<Bytes>,
) -> Result<TokenReply, ErrorReply> {
    let params = form(request)?;
    let client = client_id(&proxy.keys, &params)?;
    proxy.check_resource(&params)?;
    let need = |name| {
        params
            .get(name)
            .ok_or(ErrorReply::new("invalid_request", "a required parameter is missing"))
    };
    let ticket = match params.get("grant_type") {
        Some("authorization_code") => {
            let ticket = grant::open_code(proxy, need("code")?, client, need("code_verifier")?);
            let ticket = ticket.ok_or(ErrorReply::USED)?;
            // The verifier already identifies the client. Clients of OAuth 2.0 also send the
            // redirect URI.
            let said = params.get("redirect_uri");
            if said.is_some() && said != ticket.redirect_uri.as_deref() {
                return Err(ErrorReply::USED);
            }
            ticket
        }
        Some("refresh_token") => grant::open_refresh_token(proxy, need("refresh_token")?, client)
            .ok_or(ErrorReply::USED)?,
        _ => {
            return Err(ErrorReply::new(
                "unsupported_grant_type",
                "`grant_type` must be `authorization_code` or `refresh_token`",
            ));
        }
    };
    let taken = grant::swap(proxy, &ticket, client, params.get("scope")).await?;
    let Taken { grant, scopes, next: refresh_token } = taken;
    let exp = proxy.after(proxy.spans.access);
    let access_token = proxy.keys.sign(&AccessToken {
        iss: &proxy.issuer,
        sub: &grant.subject,
        aud: proxy.resource.as_str(),
        client_id: &grant.client,
        scope: scopes.to_string(),
        tenant: grant.tenant.as_deref(),
        iat: proxy.now(),
        exp,
        jti: random().ok_or(ErrorReply::UNAVAILABLE)?,
    });
    Ok(TokenReply {
        access_token: access_token.ok_or(ErrorReply::UNAVAILABLE)?,
        token_type: "Bearer",
        expires_in: proxy.spans.access.as_secs(),
        refresh_token,
        scope: scopes.to_string(),
    })
}

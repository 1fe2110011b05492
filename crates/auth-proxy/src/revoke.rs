//! Token revocation (RFC 7009). Revoking a refresh token ends its grant.

use bytes::Bytes;
use http::{Request, StatusCode};

use super::{
    grant,
    reply::{ErrorReply, Reply, empty},
    state::ProxyState,
    token_request::{client_id, form},
};

pub(super) async fn revoke(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    match revoked(proxy, request).await {
        Ok(()) => empty(StatusCode::OK),
        Err(error) => error.reply(),
    }
}

async fn revoked(proxy: &ProxyState, request: &Request<Bytes>) -> Result<(), ErrorReply> {
    let params = form(request)?;
    let client = client_id(&proxy.keys, &params)?;
    let token = params.get("token");
    let token = token.ok_or(ErrorReply::new("invalid_request", "`token` is missing"))?;
    if token.contains('.') {
        let why = "an access token stays valid until it expires; revoke the refresh token";
        return Err(ErrorReply::new("unsupported_token_type", why));
    }
    match grant::open_refresh_token(proxy, token, client) {
        Some(ticket) => Ok(grant::end(proxy, &ticket.grant).await?),
        // An unknown token counts as revoked.
        None => Ok(()),
    }
}

//! A client gives back what it has (RFC 7009): a refresh token, and with it all that was granted.

use bytes::Bytes;
use http::{Request, StatusCode};

use super::{
    proxy::ProxyState,
    reply::{Fault, Reply, empty},
    token::{client_id, form},
};

pub(super) async fn revoke(office: &ProxyState, request: &Request<Bytes>) -> Reply {
    match revoked(office, request).await {
        Ok(()) => empty(StatusCode::OK),
        Err(fault) => fault.reply(),
    }
}

async fn revoked(office: &ProxyState, request: &Request<Bytes>) -> Result<(), Fault> {
    let params = form(request)?;
    let client = client_id(office, &params)?;
    let token = params.get("token");
    let token = token.ok_or(Fault::new("invalid_request", "`token` is missing"))?;
    if token.contains('.') {
        let why = "an access token counts until it expires; revoke the refresh token";
        return Err(Fault::new("unsupported_token_type", why));
    }
    match office.refresh_token(token, client) {
        Some(ticket) => Ok(office.end(&ticket.grant).await?),
        // What is worth nothing is as good as revoked.
        None => Ok(()),
    }
}

//! Common parts of token requests: the form and the client ID.

use bytes::Bytes;
use http::{Request, header};

use super::{
    client::{self, Client},
    keys::Keys,
    params::Params,
    reply::ErrorReply,
};

/// Parses the form of a request.
pub(super) fn form(request: &Request<Bytes>) -> Result<Params, ErrorReply> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if !kind.trim().eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(ErrorReply::new("invalid_request", "send application/x-www-form-urlencoded"));
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
        true => Err(ErrorReply::new("invalid_request", "duplicate parameter")),
        false => Ok(params),
    }
}

/// Returns the client ID. Codes and tokens are bound to a client, so this check only tells a client
/// with an unknown ID to register again.
pub(super) fn client_id<'p>(keys: &Keys, params: &'p Params) -> Result<&'p str, ErrorReply> {
    let id = params.get("client_id");
    let is_known = |id: &&str| client::is_document(id) || Client::open(keys, id).is_some();
    id.filter(is_known).ok_or(ErrorReply::new("invalid_client", "unknown client; register again"))
}

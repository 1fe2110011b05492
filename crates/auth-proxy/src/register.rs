//! Dynamic client registration (RFC 7591). All clients are public and authenticate with PKCE. The
//! proxy stores nothing for a registration.

use bytes::Bytes;
use http::{Request, StatusCode};
use serde::{Deserialize, Serialize};

use super::{
    client::Client,
    redirect_uri::RedirectUri,
    reply::{ErrorReply, Reply, json},
    state::ProxyState,
};

/// Maximum number of redirect URIs per client.
const REDIRECT_URIS: usize = 8;

/// Maximum bytes of a client name.
const NAME: usize = 128;

/// Maximum length of a client ID, which is part of URLs.
const LONGEST_ID: usize = 2 << 10;

#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    client_name: Option<String>,
    #[serde(default)]
    grant_types: Option<Vec<String>>,
    #[serde(default)]
    response_types: Option<Vec<String>>,
}

#[derive(Serialize)]
struct Registered<'a> {
    client_id: &'a str,
    client_id_issued_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_name: Option<&'a str>,
    redirect_uris: &'a [String],
    grant_types: [&'static str; 2],
    response_types: [&'static str; 1],
    token_endpoint_auth_method: &'static str,
}

pub(super) fn register(proxy: &ProxyState, request: &Request<Bytes>) -> Reply {
    match registered(proxy, request.body()) {
        Ok(reply) => reply,
        Err(error) => error.reply(),
    }
}

fn registered(proxy: &ProxyState, body: &[u8]) -> Result<Reply, ErrorReply> {
    let metadata = |why| ErrorReply::new("invalid_client_metadata", why);
    let asked: Option<Asked> = outlive_auth::fetch::read_object(body);
    let asked =
        asked.ok_or_else(|| metadata("the body must be a JSON object of client metadata"))?;
    let has = |list: &Option<Vec<String>>, what: &str| {
        list.as_ref().is_none_or(|list| list.iter().any(|one| one == what))
    };
    if !has(&asked.grant_types, "authorization_code") || !has(&asked.response_types, "code") {
        return Err(metadata("only clients with the grant `authorization_code` can register"));
    }
    if asked.client_name.as_ref().is_some_and(|name| name.len() > NAME) {
        return Err(metadata("`client_name` is too long"));
    }
    let uris = &asked.redirect_uris;
    let are_good = uris.iter().all(|uri| RedirectUri::parse(uri).is_some());
    if uris.is_empty() || uris.len() > REDIRECT_URIS || !are_good {
        let why = "use one to eight `redirect_uris`: `https:`, or `http:` to a loopback host, without a fragment";
        return Err(ErrorReply::new("invalid_redirect_uri", why));
    }
    let client = Client { name: asked.client_name, redirect_uris: asked.redirect_uris };
    let id = client.seal(&proxy.keys).ok_or(ErrorReply::UNAVAILABLE)?;
    if id.len() > LONGEST_ID {
        return Err(metadata("the client metadata is too long"));
    }
    let registered = Registered {
        client_id: &id,
        client_id_issued_at: proxy.now(),
        client_name: client.name.as_deref(),
        redirect_uris: &client.redirect_uris,
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none",
    };
    Ok(json(StatusCode::CREATED, &registered))
}

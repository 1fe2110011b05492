//! Checks the OAuth settings of an upstream.

use super::{
    auth::{AuthKind, Exchange, UpstreamAuth},
    check_url::check_url,
    upstream::{Isolation, Upstream},
};

/// Checks the OAuth settings of an upstream. Returns the reason and the remedy of a mistake.
pub(super) fn check_auth(upstream: &Upstream, auth: &UpstreamAuth) -> Result<(), String> {
    let failed = |reason: &str| Err(reason.to_owned());
    if auth.is_of_users() && upstream.isolation == Isolation::Shared {
        return failed(
            "connections are `shared`, but `auth` has a token for each principal; remove one of them",
        );
    }
    auth.signing_key()?;
    let (has_secret, has_key) = (auth.client_secret.is_some(), auth.client_key.is_some());
    if has_secret && has_key {
        return failed("`auth` has both a client secret and a client key; remove one");
    }
    if (has_secret || has_key) && auth.client_id.is_none() {
        return failed("`auth` has a client secret or key without a client ID; add the ID");
    }
    match &auth.kind {
        AuthKind::ClientCredentials | AuthKind::Exchange(_) if !has_secret && !has_key => {
            failed("the client needs a client secret or a client key; add one")
        }
        AuthKind::Exchange(exchange) => check_exchange(exchange, upstream.allow_http),
        AuthKind::Login | AuthKind::ClientCredentials | AuthKind::EachUser => Ok(()),
    }
}

fn check_exchange(exchange: &Exchange, allow_http: bool) -> Result<(), String> {
    if exchange.audience.is_none() && exchange.resource.is_none() {
        return Err("an exchange needs an `audience` or a `resource`; add one".to_owned());
    }
    check_url("token_url", &exchange.token_url, allow_http)
}

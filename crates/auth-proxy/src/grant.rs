//! Grants: the access that a user has given to a client. A grant starts with a login. It ends when
//! it is revoked, expires, or one of its tickets is used twice.
//!
//! The code and the refresh tokens of a grant are **tickets**, numbered from 0. The grant stores
//! the number of the current ticket. A ticket with an older number was used before, so it may be
//! stolen. A ticket is sealed for its client, and a code also for its verifier.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    entries::{key, put, put_unless_ended, read},
    error::ProviderTokenError,
    identity::Identity,
    keys::{digest, random},
    login::Login,
    login_store::LoginStoreError,
    provider_client::ProviderTokens,
    provider_token::renew,
    reply::ErrorReply,
    scope_list,
    state::ProxyState,
};
use outlive_auth::server::principal_name;
use outlive_protocol::Scopes;

/// Lifetime of a code.
const CODE: Duration = Duration::from_secs(60);

/// Time for which a ticket stays reserved. Longer than the lifetime of a code and the timeout of a
/// provider.
const TURN: Duration = Duration::from_secs(120);

/// A grant.
#[derive(Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) subject: String,
    pub(super) tenant: Option<String>,
    pub(super) client: String,
    #[serde(with = "scope_list")]
    pub(super) scopes: Scopes,
    /// Number of the current ticket.
    pub(super) ticket: u64,
}

/// An opened code or refresh token.
#[derive(Serialize, Deserialize)]
pub(super) struct Ticket {
    pub(super) grant: String,
    number: u64,
    until: i64,
    /// Redirect URI of the code. `None` for a refresh token.
    pub(super) redirect_uri: Option<String>,
}

/// Result of exchanging a ticket.
pub(super) struct Taken {
    pub(super) grant: Grant,
    /// Scopes of the access token.
    pub(super) scopes: Scopes,
    /// Next refresh token.
    pub(super) next: String,
}

/// Returns the granted scopes, reduced to the requested ones.
fn narrowed(granted: &Scopes, asked: Option<&str>) -> Result<Scopes, ErrorReply> {
    let Some(asked) = asked else { return Ok(granted.clone()) };
    let given = Scopes::of(asked.split(' ').filter(|scope| granted.contains(scope)));
    match given.is_empty() && !granted.is_empty() {
        true => Err(ErrorReply::new("invalid_scope", "none of the requested scopes was granted")),
        false => Ok(given),
    }
}

impl Grant {
    /// Returns the principal name that the resource server derives from tokens of this grant.
    fn caller(&self, issuer: &str) -> String {
        let (subject, client, tenant) = (&self.subject, &self.client, self.tenant.as_deref());
        principal_name(issuer, subject, client, tenant)
    }
}

/// Creates the grant of a completed login, and returns its code.
pub(super) async fn create(
    proxy: &ProxyState,
    login: &Login,
    identity: Identity,
    scopes: Scopes,
    tokens: &ProviderTokens,
) -> Result<String, ErrorReply> {
    let id = random().ok_or(ErrorReply::UNAVAILABLE)?;
    let grant = Grant {
        subject: identity.subject,
        tenant: identity.tenant,
        client: login.client.clone(),
        scopes,
        ticket: 0,
    };
    put(proxy, &key("upstream", &id), tokens, proxy.spans.refresh).await?;
    put(proxy, &key("grant", &id), &grant, proxy.spans.refresh).await?;
    let redirect_uri = Some(login.redirect_uri.clone());
    let ticket = Ticket { grant: id, number: 0, until: proxy.after(CODE), redirect_uri };
    let context = ["code", &login.client_digest, &login.challenge];
    proxy.keys.seal(&ticket, &context).ok_or(ErrorReply::UNAVAILABLE)
}

/// Opens a code with its client and verifier.
pub(super) fn open_code(
    proxy: &ProxyState,
    code: &str,
    client: &str,
    verifier: &str,
) -> Option<Ticket> {
    proxy.keys.open(code, &["code", &digest(client), &digest(verifier)])
}

/// Opens a refresh token with its client.
pub(super) fn open_refresh_token(proxy: &ProxyState, token: &str, client: &str) -> Option<Ticket> {
    proxy.keys.open(token, &["refresh", &digest(client)])
}

/// Exchanges a ticket for the next one. A ticket that was used before ends the grant, because one
/// of its two users has stolen it.
pub(super) async fn swap(
    proxy: &Arc<ProxyState>,
    ticket: &Ticket,
    client: &str,
    scopes: Option<&str>,
) -> Result<Taken, ErrorReply> {
    if proxy.now() >= ticket.until {
        return Err(ErrorReply::USED);
    }
    let turn = key("turn", &format!("{}/{}", ticket.grant, ticket.number));
    let is_mine = proxy.logins.put_if_absent(&turn, String::new(), TURN).await?;
    // Read after the reservation, so that the result of the previous exchange is visible.
    let grant: Option<Grant> = read(proxy, &key("grant", &ticket.grant)).await?;
    let grant = grant.ok_or(ErrorReply::USED)?;
    if grant.ticket != ticket.number {
        tracing::warn!(client = %grant.client.escape_debug(), "ending a grant: its code or refresh token was used twice");
        end(proxy, &ticket.grant).await?;
        return Err(ErrorReply::USED);
    }
    if !is_mine {
        // Another request is exchanging this ticket, so the client must retry.
        return Err(ErrorReply::UNAVAILABLE);
    }
    let taken = match narrowed(&proxy.scopes.remaining(&grant.scopes), scopes) {
        Ok(scopes) => {
            let advanced = advance(proxy, ticket, grant, client).await;
            advanced.map(|(grant, next)| Taken { grant, scopes, next })
        }
        Err(error) => Err(error),
    };
    if taken.as_ref().is_err_and(|error| error.code != ErrorReply::USED.code) {
        // The ticket was not used, so it stays valid.
        proxy.logins.delete(&turn).await?;
    }
    taken
}

async fn advance(
    proxy: &Arc<ProxyState>,
    ticket: &Ticket,
    mut grant: Grant,
    client: &str,
) -> Result<(Grant, String), ErrorReply> {
    let id = &ticket.grant;
    if ticket.number > 0 {
        // A refresh token of the proxy is valid only while that of the provider is.
        match renew(proxy, id).await {
            Ok(()) => {}
            Err(ProviderTokenError::Unavailable) => return Err(ErrorReply::UNAVAILABLE),
            Err(ProviderTokenError::LoginRequired) => {
                end(proxy, id).await?;
                return Err(ErrorReply::USED);
            }
        }
    }
    grant.ticket += 1;
    let span = proxy.spans.refresh;
    let next = Ticket {
        grant: id.clone(),
        number: grant.ticket,
        until: proxy.after(span),
        redirect_uri: None,
    };
    let next =
        proxy.keys.seal(&next, &["refresh", &digest(client)]).ok_or(ErrorReply::UNAVAILABLE)?;
    put_unless_ended(proxy, id, "grant", &grant).await?;
    put(proxy, &key("caller", &digest(&grant.caller(&proxy.issuer))), id, span).await?;
    Ok((grant, next))
}

/// Ends a grant, and revokes the tokens of the provider.
pub(super) async fn end(proxy: &ProxyState, id: &str) -> Result<(), LoginStoreError> {
    let tokens: Option<ProviderTokens> = read(proxy, &key("upstream", id)).await?;
    // The end marker is written first, because concurrent writers check it after each write.
    proxy.logins.put(&key("ended", id), String::new(), TURN).await?;
    proxy.logins.delete(&key("grant", id)).await?;
    proxy.logins.delete(&key("upstream", id)).await?;
    if let Some(tokens) = tokens {
        proxy.provider.revoke(&tokens).await;
    }
    Ok(())
}

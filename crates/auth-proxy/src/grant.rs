//! What somebody has granted a client: it begins with a login, and ends when it is revoked, not used
//! for long, or used twice.
//!
//! A code and all refresh tokens of a grant are **tickets**, numbered from 0 on: the grant knows which
//! number is next, and a ticket with another was used before, by somebody who should not have it. A
//! ticket opens for its client alone, a code with its verifier only: they are what it is sealed with.

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
    reply::Fault,
    scope_list,
    state::ProxyState,
};
use outlive_auth::server::principal_name;
use outlive_protocol::Scopes;

/// How long a code is good for. Clients use it at once.
const CODE: Duration = Duration::from_secs(60);

/// How long it is known who has taken a ticket. Longer than a code lives, and than a provider takes.
const TURN: Duration = Duration::from_secs(120);

/// What was granted.
#[derive(Serialize, Deserialize)]
pub(super) struct Grant {
    pub(super) subject: String,
    pub(super) tenant: Option<String>,
    pub(super) client: String,
    #[serde(with = "scope_list")]
    pub(super) scopes: Scopes,
    /// The number of the ticket that is out.
    pub(super) ticket: u64,
}

/// A code or a refresh token, opened.
#[derive(Serialize, Deserialize)]
pub(super) struct Ticket {
    pub(super) grant: String,
    number: u64,
    until: i64,
    /// Of a code: where it went.
    pub(super) redirect_uri: Option<String>,
}

/// What a ticket was swapped for.
pub(super) struct Taken {
    pub(super) grant: Grant,
    /// What the access token is for.
    pub(super) scopes: Scopes,
    /// The next refresh token.
    pub(super) next: String,
}

/// All scopes that were granted, or those of them that were asked for.
fn narrowed(granted: &Scopes, asked: Option<&str>) -> Result<Scopes, Fault> {
    let Some(asked) = asked else { return Ok(granted.clone()) };
    let given = Scopes::of(asked.split(' ').filter(|scope| granted.contains(scope)));
    match given.is_empty() && !granted.is_empty() {
        true => Err(Fault::new("invalid_scope", "none of these scopes was granted")),
        false => Ok(given),
    }
}

impl Grant {
    /// What the resource server calls whoever shows a token of this grant.
    fn caller(&self, issuer: &str) -> String {
        let (subject, client, tenant) = (&self.subject, &self.client, self.tenant.as_deref());
        principal_name(issuer, subject, client, tenant)
    }
}

/// Creates the grant of a login that a user has finished, and returns its code.
pub(super) async fn create(
    proxy: &ProxyState,
    login: &Login,
    identity: Identity,
    scopes: Scopes,
    tokens: &ProviderTokens,
) -> Result<String, Fault> {
    let id = random().ok_or(Fault::UNAVAILABLE)?;
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
    proxy.keys.seal(&ticket, &context).ok_or(Fault::UNAVAILABLE)
}

/// Opens a code, for the client and the verifier that it is for.
pub(super) fn open_code(
    proxy: &ProxyState,
    code: &str,
    client: &str,
    verifier: &str,
) -> Option<Ticket> {
    proxy.keys.open(code, &["code", &digest(client), &digest(verifier)])
}

/// Opens a refresh token, for the client that it is for.
pub(super) fn open_refresh_token(proxy: &ProxyState, token: &str, client: &str) -> Option<Ticket> {
    proxy.keys.open(token, &["refresh", &digest(client)])
}

/// Swaps a ticket for the next one. One that was used before ends the grant: one of those who
/// have used it has stolen it, and nobody knows which.
pub(super) async fn swap(
    proxy: &Arc<ProxyState>,
    ticket: &Ticket,
    client: &str,
    scopes: Option<&str>,
) -> Result<Taken, Fault> {
    if proxy.now() >= ticket.until {
        return Err(Fault::USED);
    }
    let turn = key("turn", &format!("{}/{}", ticket.grant, ticket.number));
    let is_mine = proxy.logins.put_if_absent(&turn, String::new(), TURN).await?;
    // Read after that, so that it is as the one before has left it.
    let grant: Option<Grant> = read(proxy, &key("grant", &ticket.grant)).await?;
    let grant = grant.ok_or(Fault::USED)?;
    if grant.ticket != ticket.number {
        tracing::warn!(client = %grant.client.escape_debug(), "a code or refresh token was used twice; its grant ends");
        end(proxy, &ticket.grant).await?;
        return Err(Fault::USED);
    }
    if !is_mine {
        // Somebody is at it, here or elsewhere. What comes of that decides about this one.
        return Err(Fault::UNAVAILABLE);
    }
    let taken = match narrowed(&proxy.scopes.remaining(&grant.scopes), scopes) {
        Ok(scopes) => {
            let advanced = advance(proxy, ticket, grant, client).await;
            advanced.map(|(grant, next)| Taken { grant, scopes, next })
        }
        Err(fault) => Err(fault),
    };
    if taken.as_ref().is_err_and(|fault| fault.error != Fault::USED.error) {
        // It was not used, and may be.
        proxy.logins.delete(&turn).await?;
    }
    taken
}

async fn advance(
    proxy: &Arc<ProxyState>,
    ticket: &Ticket,
    mut grant: Grant,
    client: &str,
) -> Result<(Grant, String), Fault> {
    let id = &ticket.grant;
    if ticket.number > 0 {
        // Ours is good for as long as the provider's is.
        match renew(proxy, id).await {
            Ok(()) => {}
            Err(ProviderTokenError::Unavailable) => return Err(Fault::UNAVAILABLE),
            Err(ProviderTokenError::LoginRequired) => {
                end(proxy, id).await?;
                return Err(Fault::USED);
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
    let next = proxy.keys.seal(&next, &["refresh", &digest(client)]).ok_or(Fault::UNAVAILABLE)?;
    put_unless_ended(proxy, id, "grant", &grant).await?;
    put(proxy, &key("caller", &digest(&grant.caller(&proxy.issuer))), id, span).await?;
    Ok((grant, next))
}

/// Ends a grant, with all that came of it.
pub(super) async fn end(proxy: &ProxyState, id: &str) -> Result<(), LoginStoreError> {
    let tokens: Option<ProviderTokens> = read(proxy, &key("upstream", id)).await?;
    // First: a request that is about to write an entry checks this before it does.
    proxy.logins.put(&key("ended", id), String::new(), TURN).await?;
    proxy.logins.delete(&key("grant", id)).await?;
    proxy.logins.delete(&key("upstream", id)).await?;
    if let Some(tokens) = tokens {
        proxy.provider.revoke(&tokens).await;
    }
    Ok(())
}

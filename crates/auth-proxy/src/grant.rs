//! What somebody has granted a client: it begins with a login, and ends when it is revoked, not used
//! for long, or used twice.
//!
//! A code and all refresh tokens of a grant are **tickets**, numbered from 0 on: the grant knows which
//! number is next, and a ticket with another was used before, by somebody who should not have it. A
//! ticket opens for its client alone, a code with its verifier only: they are what it is sealed with.

use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{
    authorize::Login,
    identity::Identity,
    keys::{digest, random},
    login_store::LoginStoreError,
    provider::UpstreamTokens,
    proxy::ProxyState,
    reply::Fault,
    scope_list,
    upstream_token::UpstreamTokenError,
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

pub(super) const USED: Fault =
    Fault::new("invalid_grant", "it is unknown, expired, revoked or used, or not this client's");

/// All scopes that were granted, or those of them that were asked for.
fn narrowed(granted: &Scopes, asked: Option<&str>) -> Result<Scopes, Fault> {
    let Some(asked) = asked else { return Ok(granted.clone()) };
    let given = Scopes::of(asked.split(' ').filter(|scope| granted.contains(scope)));
    match given.is_empty() && !granted.is_empty() {
        true => Err(Fault::new("invalid_scope", "none of these scopes was granted")),
        false => Ok(given),
    }
}

/// Key of an entry in the login store.
pub(super) fn key(kind: &str, name: &str) -> String {
    format!("proxy/{kind}/{name}")
}

impl Grant {
    /// What the resource server calls whoever shows a token of this grant.
    fn caller(&self, issuer: &str) -> String {
        let (subject, client, tenant) = (&self.subject, &self.client, self.tenant.as_deref());
        principal_name(issuer, subject, client, tenant)
    }
}

impl Login {
    /// Begins the grant of a login that somebody has finished, and gives its code.
    pub(super) async fn grant(
        &self,
        office: &ProxyState,
        identity: Identity,
        scopes: Scopes,
        tokens: &UpstreamTokens,
    ) -> Result<String, Fault> {
        let id = random().ok_or(Fault::UNAVAILABLE)?;
        let grant = Grant {
            subject: identity.subject,
            tenant: identity.tenant,
            client: self.client.clone(),
            scopes,
            ticket: 0,
        };
        office.put(&key("upstream", &id), tokens, office.spans.refresh).await?;
        office.put(&key("grant", &id), &grant, office.spans.refresh).await?;
        let redirect_uri = Some(self.redirect_uri.clone());
        let ticket = Ticket { grant: id, number: 0, until: office.after(CODE), redirect_uri };
        let context = ["code", &self.client_digest, &self.challenge];
        office.keys.seal(&ticket, &context).ok_or(Fault::UNAVAILABLE)
    }
}

impl ProxyState {
    /// Opens a code, for the client and the verifier that it is for.
    pub(super) fn code(&self, code: &str, client: &str, verifier: &str) -> Option<Ticket> {
        self.keys.open(code, &["code", &digest(client), &digest(verifier)])
    }

    /// Opens a refresh token, for the client that it is for.
    pub(super) fn refresh_token(&self, token: &str, client: &str) -> Option<Ticket> {
        self.keys.open(token, &["refresh", &digest(client)])
    }

    /// Takes a ticket, for the next one. One that was used before ends the grant: one of those who
    /// have used it has stolen it, and nobody knows which.
    pub(super) async fn take(
        self: &std::sync::Arc<Self>,
        ticket: &Ticket,
        client: &str,
        scopes: Option<&str>,
    ) -> Result<Taken, Fault> {
        if self.now() >= ticket.until {
            return Err(USED);
        }
        let turn = key("turn", &format!("{}/{}", ticket.grant, ticket.number));
        let is_mine = self.logins.put_if_absent(&turn, String::new(), TURN).await?;
        // Read after that, so that it is as the one before has left it.
        let grant: Option<Grant> = self.read(&key("grant", &ticket.grant)).await?;
        let grant = grant.ok_or(USED)?;
        if grant.ticket != ticket.number {
            tracing::warn!(client = %grant.client.escape_debug(), "a code or refresh token was used twice; its grant ends");
            self.end(&ticket.grant).await?;
            return Err(USED);
        }
        if !is_mine {
            // Somebody is at it, here or elsewhere. What comes of that decides about this one.
            return Err(Fault::UNAVAILABLE);
        }
        let taken = match narrowed(&self.scopes.remaining(&grant.scopes), scopes) {
            Ok(scopes) => {
                let advanced = self.advance(ticket, grant, client).await;
                advanced.map(|(grant, next)| Taken { grant, scopes, next })
            }
            Err(fault) => Err(fault),
        };
        if taken.as_ref().is_err_and(|fault| fault.error != USED.error) {
            // It was not used, and may be.
            self.logins.delete(&turn).await?;
        }
        taken
    }

    async fn advance(
        self: &std::sync::Arc<Self>,
        ticket: &Ticket,
        mut grant: Grant,
        client: &str,
    ) -> Result<(Grant, String), Fault> {
        let id = &ticket.grant;
        if ticket.number > 0 {
            // Ours is good for as long as the provider's is.
            match self.renewed(id).await {
                Ok(()) => {}
                Err(UpstreamTokenError::Unavailable) => return Err(Fault::UNAVAILABLE),
                Err(UpstreamTokenError::LoginRequired) => {
                    self.end(id).await?;
                    return Err(USED);
                }
            }
        }
        grant.ticket += 1;
        let span = self.spans.refresh;
        let next = Ticket {
            grant: id.clone(),
            number: grant.ticket,
            until: self.after(span),
            redirect_uri: None,
        };
        let next =
            self.keys.seal(&next, &["refresh", &digest(client)]).ok_or(Fault::UNAVAILABLE)?;
        self.put_unless_ended(id, "grant", &grant).await?;
        self.put(&key("caller", &digest(&grant.caller(&self.issuer))), id, span).await?;
        Ok((grant, next))
    }

    /// Ends a grant, with all that came of it.
    pub(super) async fn end(&self, id: &str) -> Result<(), LoginStoreError> {
        let tokens: Option<UpstreamTokens> = self.read(&key("upstream", id)).await?;
        // First: a request that is about to write an entry checks this before it does.
        self.logins.put(&key("ended", id), String::new(), TURN).await?;
        self.logins.delete(&key("grant", id)).await?;
        self.logins.delete(&key("upstream", id)).await?;
        if let Some(tokens) = tokens {
            self.provider.revoke(&tokens).await;
        }
        Ok(())
    }

    /// Stores an entry of a grant, and deletes it if the grant has ended meanwhile: either that is seen
    /// here, or the end deletes the entry after it was stored.
    pub(super) async fn put_unless_ended(
        &self,
        id: &str,
        kind: &str,
        value: &impl Serialize,
    ) -> Result<(), Fault> {
        let place = key(kind, id);
        self.put(&place, value, self.spans.refresh).await?;
        if self.logins.get(&key("ended", id)).await?.is_some() {
            self.logins.delete(&place).await?;
            return Err(USED);
        }
        Ok(())
    }

    /// Keeps a value, sealed for its place.
    pub(super) async fn put(
        &self,
        key: &str,
        value: &impl Serialize,
        ttl: Duration,
    ) -> Result<(), LoginStoreError> {
        let sealed = self.keys.seal(value, &["note", key]);
        let sealed =
            sealed.ok_or_else(|| LoginStoreError::new("the system gave no random bytes"))?;
        self.logins.put(key, sealed, ttl).await
    }

    /// A value that was kept at this place.
    pub(super) async fn read<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<T>, LoginStoreError> {
        let entry = self.logins.get(key).await?;
        Ok(entry.and_then(|sealed| self.keys.open(&sealed, &["note", key])))
    }
}

//! What a token has to say to be good here, once it is known to be its issuer's.
//! Spec: RFC 9068 section 4, RFC 8707, RFC 7800.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use outlive_protocol::Principal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    hierarchy::Hierarchy,
    issuer::{Check, Issuer},
    principal_name::Caller,
    resource_uri::ResourceUri,
    token_cache::Accepted,
};
use crate::{
    jose::{Claims, Header},
    json,
};

/// What all tokens are held against.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) resource: ResourceUri,
    pub(super) hierarchy: Hierarchy,
    /// How far clocks may be apart, in seconds.
    pub(super) skew: i64,
    /// How long a signed token is taken without being looked at again, in seconds.
    pub(super) keep: i64,
    /// The same for one that the issuer was asked about.
    pub(super) keep_answer: i64,
}

/// Why a token is not good. For the log: callers are told all of these in the same words.
pub(super) type Why = &'static str;

impl Rules {
    /// Whether the type of a signed token is one of access tokens.
    pub(super) fn kind(&self, issuer: &Issuer, header: &Header) -> Result<(), Why> {
        let fits = header.is_kind("at+jwt")
            || !issuer.strict_kind && (header.kind.is_none() || header.is_kind("JWT"));
        if fits { Ok(()) } else { Err("it is a token of another kind") }
    }

    /// Judges what a token says; `said` is the JSON that nobody but the issuer has written.
    pub(super) fn judge(&self, issuer: &Issuer, said: &[u8], now: i64) -> Result<Accepted, Why> {
        let claims = Claims::read(said).ok_or("its claims cannot be read")?;
        let asked = matches!(issuer.check, Check::Introspection(_));
        match claims.iss.as_deref() {
            Some(iss) if iss == &*issuer.id => {}
            None if asked => {}
            _ => return Err("it is of another issuer"),
        }
        self.audience(issuer, &claims)?;
        let exp = match claims.exp {
            Some(exp) if exp.saturating_add(self.skew) <= now => return Err("it has expired"),
            Some(exp) => exp,
            None if asked => i64::MAX,
            None => return Err("it does not say when it expires"),
        };
        if claims.nbf.is_some_and(|nbf| nbf.saturating_sub(self.skew) > now) {
            return Err("it is not valid yet");
        }
        let key = self.key(&claims)?;
        let principal = self.caller(issuer, &claims, said)?;
        let keep = if asked { self.keep_answer } else { self.keep };
        let until = exp.saturating_add(self.skew).min(now.saturating_add(keep));
        Ok(Accepted { principal, until, key })
    }

    /// A token for somebody else is not for us, whoever brings it.
    fn audience(&self, issuer: &Issuer, claims: &Claims<'_>) -> Result<(), Why> {
        let is_ours = |name: &str| {
            self.resource.is_named_by(name) || issuer.audiences.iter().any(|ours| ours == name)
        };
        let meant = claims.aud.texts().any(is_ours)
            || issuer.any_audience && claims.aud.texts().next().is_none();
        if !meant {
            return Err("it is for another audience");
        }
        // No RFC asks for this claim; an issuer that writes it means it.
        match &claims.resource {
            Some(resource) if !resource.texts().any(is_ours) => Err("it is for another resource"),
            _ => Ok(()),
        }
    }

    fn key(&self, claims: &Claims<'_>) -> Result<Option<Arc<str>>, Why> {
        match &claims.cnf {
            None => Ok(None),
            Some(cnf) => match &cnf.jkt {
                Some(key) => Ok(Some(Arc::from(&**key))),
                // Bound to something that cannot be checked here, such as a certificate.
                None => Err("it is bound to what cannot be checked here"),
            },
        }
    }

    fn caller(&self, issuer: &Issuer, claims: &Claims<'_>, said: &[u8]) -> Result<Principal, Why> {
        let filled = |claim: &Option<Cow<'_, str>>| {
            claim.as_deref().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let client = match &issuer.client {
            None => filled(&claims.client_id).or_else(|| filled(&claims.azp)),
            Some(claim) => Some(text_claim(said, claim).ok_or("it does not name a client")?),
        };
        let subject = filled(&claims.sub).or_else(|| client.clone());
        let subject = subject.ok_or("it does not say whose it is")?;
        let tenant = match &issuer.tenant {
            None => None,
            Some(claim) => Some(text_claim(said, claim).ok_or("it does not name a tenant")?),
        };
        let caller = Caller {
            issuer: &issuer.id,
            subject: &subject,
            client: client.as_deref().unwrap_or_default(),
            tenant: tenant.as_deref(),
        };
        let scopes = self.hierarchy.closure(claims.scopes());
        Ok(Principal::named(&caller.name()).with_scopes(scopes))
    }
}

/// A claim by name: a text, and not an empty one.
fn text_claim(said: &[u8], claim: &str) -> Option<String> {
    let all: HashMap<Cow<'_, str>, &RawValue> = json::object(said)?;
    let text = String::deserialize(*all.get(claim)?).ok()?;
    (!text.is_empty()).then_some(text)
}

//! Claim checks of tokens that have been verified. Spec: RFC 9068 section 4, RFC 8707, RFC 7800.

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

/// Rules that all tokens must satisfy.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) resource: ResourceUri,
    pub(super) hierarchy: Hierarchy,
    /// Permitted clock difference in seconds.
    pub(super) skew: i64,
    /// Cache time of a signed token in seconds.
    pub(super) keep: i64,
    /// Cache time of an introspected token in seconds.
    pub(super) keep_answer: i64,
}

/// Reason why a token is rejected. Only logged: callers get the same message for every reason.
pub(super) type Why = &'static str;

impl Rules {
    /// Checks that the type of a signed token is that of an access token.
    pub(super) fn kind(&self, issuer: &Issuer, header: &Header) -> Result<(), Why> {
        let fits = header.is_kind("at+jwt")
            || !issuer.strict_kind && (header.kind.is_none() || header.is_kind("JWT"));
        if fits { Ok(()) } else { Err("not an access token") }
    }

    /// Checks the claims of a token. `said` is JSON from the verified issuer.
    pub(super) fn judge(&self, issuer: &Issuer, said: &[u8], now: i64) -> Result<Accepted, Why> {
        let claims = Claims::read(said).ok_or("malformed claims")?;
        let asked = matches!(issuer.check, Check::Introspection(_));
        match claims.iss.as_deref() {
            Some(iss) if iss == &*issuer.id => {}
            None if asked => {}
            _ => return Err("wrong issuer"),
        }
        self.audience(issuer, &claims)?;
        let exp = match claims.exp {
            Some(exp) if exp.saturating_add(self.skew) <= now => return Err("expired"),
            Some(exp) => exp,
            None if asked => i64::MAX,
            None => return Err("no expiry"),
        };
        if claims.nbf.is_some_and(|nbf| nbf.saturating_sub(self.skew) > now) {
            return Err("not valid yet");
        }
        let key = self.key(&claims)?;
        let principal = self.caller(issuer, &claims, said)?;
        let keep = if asked { self.keep_answer } else { self.keep };
        let until = exp.saturating_add(self.skew).min(now.saturating_add(keep));
        Ok(Accepted { principal, until, key })
    }

    /// Checks that the token is for this server.
    fn audience(&self, issuer: &Issuer, claims: &Claims<'_>) -> Result<(), Why> {
        let is_ours = |name: &str| {
            self.resource.is_named_by(name) || issuer.audiences.iter().any(|ours| ours == name)
        };
        let meant = claims.aud.texts().any(is_ours)
            || issuer.any_audience && claims.aud.texts().next().is_none();
        if !meant {
            return Err("wrong audience");
        }
        // No RFC requires the `resource` claim, but if an issuer sets it, it must match.
        match &claims.resource {
            Some(resource) if !resource.texts().any(is_ours) => Err("wrong resource"),
            _ => Ok(()),
        }
    }

    fn key(&self, claims: &Claims<'_>) -> Result<Option<Arc<str>>, Why> {
        match &claims.cnf {
            None => Ok(None),
            Some(cnf) => match &cnf.jkt {
                Some(key) => Ok(Some(Arc::from(&**key))),
                // The token is bound to an unsupported credential, such as a certificate.
                None => Err("unsupported key binding"),
            },
        }
    }

    fn caller(&self, issuer: &Issuer, claims: &Claims<'_>, said: &[u8]) -> Result<Principal, Why> {
        let filled = |claim: &Option<Cow<'_, str>>| {
            claim.as_deref().filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let client = match &issuer.client {
            None => filled(&claims.client_id).or_else(|| filled(&claims.azp)),
            Some(claim) => Some(text_claim(said, claim).ok_or("no client claim")?),
        };
        let subject = filled(&claims.sub).or_else(|| client.clone());
        let subject = subject.ok_or("no subject")?;
        let tenant = match &issuer.tenant {
            None => None,
            Some(claim) => Some(text_claim(said, claim).ok_or("no tenant claim")?),
        };
        let caller = Caller {
            issuer: &issuer.id,
            subject: &subject,
            client: client.as_deref().unwrap_or_default(),
            tenant: tenant.as_deref(),
        };
        let person = match &issuer.person {
            None => caller.person(),
            Some(claim) => {
                let subject = text_claim(said, claim).ok_or("no person claim")?;
                Caller { subject: &subject, ..caller }.person()
            }
        };
        let scopes = self.hierarchy.closure(claims.scopes());
        let principal = Principal::named(&caller.name()).with_person(person).with_scopes(scopes);
        let decides = issuer.deciding_client.is_some()
            && issuer.deciding_client.as_deref() == client.as_deref();
        Ok(if decides { principal.deciding() } else { principal })
    }
}

/// Returns a claim by name, if it is a nonempty string.
fn text_claim(said: &[u8], claim: &str) -> Option<String> {
    let all: HashMap<Cow<'_, str>, &RawValue> = json::object(said)?;
    let text = String::deserialize(*all.get(claim)?).ok()?;
    (!text.is_empty()).then_some(text)
}

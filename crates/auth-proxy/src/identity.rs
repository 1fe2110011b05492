//! Identity of a user, as the provider reports it.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use super::provider::Provider;

/// A rule about users, for logins or for scopes.
pub(super) type UserRule = Arc<dyn Fn(&Identity) -> bool + Send + Sync>;

/// A user who has logged in at the provider.
#[non_exhaustive]
pub struct Identity {
    /// ID of the user at the provider.
    pub subject: String,
    /// Tenant of the user, if [`Provider::tenant`] is set.
    pub tenant: Option<String>,
    claims: Map<String, Value>,
}

impl Identity {
    /// Reads an identity from the claims of the provider. Returns `None` if the subject or the
    /// tenant is missing.
    pub(super) fn from_claims(provider: &Provider, claims: Map<String, Value>) -> Option<Self> {
        let subject = text(claims.get(&provider.subject)?)?;
        let tenant = match &provider.tenant {
            None => None,
            Some(claim) => Some(text(claims.get(claim)?)?),
        };
        Some(Self { subject, tenant, claims })
    }

    /// Returns a claim of the provider. An `email` belongs to the user only if `email_verified` is
    /// true.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }

    /// Returns whether a claim is one of `values`, or a list that contains one of them.
    ///
    /// A number is compared as its digits. `email` matches only if `email_verified` is true: an
    /// unverified address may belong to another person.
    pub fn has<S: AsRef<str>>(&self, claim: &str, values: impl IntoIterator<Item = S>) -> bool {
        if claim == "email" && self.claim("email_verified").is_none_or(|it| *it != true) {
            return false;
        }
        let Some(said) = self.claim(claim) else { return false };
        let is = |said: &Value, value: &str| match said {
            Value::String(text) => text == value,
            Value::Number(number) => number.to_string() == value,
            _ => false,
        };
        values.into_iter().any(|value| match said {
            Value::Array(list) => list.iter().any(|one| is(one, value.as_ref())),
            one => is(one, value.as_ref()),
        })
    }
}

/// Returns a claim as text. Some providers use numbers as user IDs.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) if number.is_u64() => Some(number.to_string()),
        _ => None,
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("subject", &self.subject)
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

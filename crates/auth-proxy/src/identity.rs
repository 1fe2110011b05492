//! Who has logged in, as the provider says.

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

use super::provider::Provider;

/// A rule about users: who may log in, or who gets a scope.
pub(super) type UserRule = Arc<dyn Fn(&Identity) -> bool + Send + Sync>;

/// Somebody who has logged in with the provider.
#[non_exhaustive]
pub struct Identity {
    /// Who it is.
    pub subject: String,
    /// The tenant, where [`Provider::tenant`] says which claim that is.
    pub tenant: Option<String>,
    claims: Map<String, Value>,
}

impl Identity {
    /// Reads what the provider says: `None` if it does not say who it is.
    pub(super) fn from_claims(provider: &Provider, claims: Map<String, Value>) -> Option<Self> {
        let subject = text(claims.get(&provider.subject)?)?;
        let tenant = match &provider.tenant {
            None => None,
            Some(claim) => Some(text(claims.get(claim)?)?),
        };
        Some(Self { subject, tenant, claims })
    }

    /// What else the provider says. Whether an `email` is the user's own, `email_verified` says.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }

    /// Returns whether a claim is one of `values`, or is a list that has one of them.
    ///
    /// A number counts as its digits. `email` counts only if `email_verified` is true: an address that
    /// the provider has not verified may belong to another person.
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

/// Some providers number their users.
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

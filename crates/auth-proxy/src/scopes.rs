//! Scopes of a user: the base scopes, and those that a rule grants.
//!
//! A client requests scopes before the proxy knows the user. [`ScopeRules::asked`] selects the
//! supported scopes, and the consent page shows them. [`ScopeRules::granted`] reduces them after
//! the login. The token response contains the granted scopes (RFC 6749 section 3.3).

use outlive_protocol::Scopes;

use super::{
    identity::{Identity, UserRule},
    reply::ErrorReply,
};

/// Supported scopes, and the rules that grant them.
#[derive(Default)]
pub(super) struct ScopeRules {
    /// Scopes of all permitted users.
    base: Scopes,
    /// Scopes that a rule grants.
    grants: Vec<(Scopes, UserRule)>,
    /// All supported scopes.
    offered: Scopes,
}

impl ScopeRules {
    pub(super) fn new(base: Scopes, grants: Vec<(Scopes, UserRule)>) -> Self {
        let offered = grants.iter().fold(base.clone(), |all, (scopes, _)| all.with(scopes));
        Self { base, grants, offered }
    }

    /// Returns all supported scopes.
    pub(super) fn offered(&self) -> &Scopes {
        &self.offered
    }

    /// Returns the requested scopes that are supported. A client that requests no scopes gets the
    /// base scopes.
    pub(super) fn asked(&self, asked: Option<&str>) -> Result<Scopes, ErrorReply> {
        let Some(asked) = asked else { return Ok(self.base.clone()) };
        let known = Scopes::of(asked.split(' ').filter(|scope| self.offered.contains(scope)));
        match known.is_empty() && !self.offered.is_empty() {
            true => {
                Err(ErrorReply::new("invalid_scope", "none of the requested scopes is supported"))
            }
            false => Ok(known),
        }
    }

    /// Splits scopes into those that every user gets and those that depend on a rule.
    pub(super) fn split(&self, asked: &Scopes) -> (Scopes, Scopes) {
        let (base, others): (Vec<&str>, Vec<&str>) =
            asked.iter().partition(|scope| self.base.contains(scope));
        (Scopes::of(base), Scopes::of(others))
    }

    /// Returns the requested scopes that `user` gets.
    pub(super) fn granted(&self, user: &Identity, asked: &Scopes) -> Result<Scopes, ErrorReply> {
        let rules = self.grants.iter().filter(|(_, rule)| rule(user));
        let allowed = rules.fold(self.base.clone(), |all, (scopes, _)| all.with(scopes));
        let granted = Scopes::of(asked.iter().filter(|scope| allowed.contains(scope)));
        match granted.is_empty() && !asked.is_empty() {
            true => Err(ErrorReply::new(
                "invalid_scope",
                "the user is not granted any of the requested scopes",
            )),
            false => Ok(granted),
        }
    }

    /// Returns the scopes of a grant that are still supported: a rule may have been removed.
    pub(super) fn remaining(&self, granted: &Scopes) -> Scopes {
        Scopes::of(granted.iter().filter(|scope| self.offered.contains(scope)))
    }
}

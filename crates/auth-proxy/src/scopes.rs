//! Which scopes a user gets: the base scopes, and those that a rule grants.
//!
//! A client asks for scopes before the proxy knows its user. So [`ScopeRules::asked`] keeps the scopes
//! that exist here, the consent page shows them, and [`ScopeRules::granted`] narrows them after the
//! login. The token response says what was granted (RFC 6749 section 3.3).

use outlive_protocol::Scopes;

use super::{
    identity::{Identity, UserRule},
    reply::Fault,
};

/// The scopes that the proxy gives, and to whom.
#[derive(Default)]
pub(super) struct ScopeRules {
    /// Scopes for every user who may log in.
    base: Scopes,
    /// Scopes for the users that a rule names.
    grants: Vec<(Scopes, UserRule)>,
    /// All of them together.
    offered: Scopes,
}

impl ScopeRules {
    pub(super) fn new(base: Scopes, grants: Vec<(Scopes, UserRule)>) -> Self {
        let offered = grants.iter().fold(base.clone(), |all, (scopes, _)| all.with(scopes));
        Self { base, grants, offered }
    }

    /// Returns every scope that some user can get.
    pub(super) fn offered(&self) -> &Scopes {
        &self.offered
    }

    /// Returns the scopes that a client asks for, without those that do not exist here. A client that
    /// names no scope asks for the base scopes.
    pub(super) fn asked(&self, asked: Option<&str>) -> Result<Scopes, Fault> {
        let Some(asked) = asked else { return Ok(self.base.clone()) };
        let known = Scopes::of(asked.split(' ').filter(|scope| self.offered.contains(scope)));
        match known.is_empty() && !self.offered.is_empty() {
            true => Err(Fault::new("invalid_scope", "none of these scopes is given here")),
            false => Ok(known),
        }
    }

    /// Splits scopes into those that every user gets and those that depend on a rule.
    pub(super) fn split(&self, asked: &Scopes) -> (Scopes, Scopes) {
        let (base, others): (Vec<&str>, Vec<&str>) =
            asked.iter().partition(|scope| self.base.contains(scope));
        (Scopes::of(base), Scopes::of(others))
    }

    /// Returns the scopes that `user` gets, of those that were asked for.
    pub(super) fn granted(&self, user: &Identity, asked: &Scopes) -> Result<Scopes, Fault> {
        let rules = self.grants.iter().filter(|(_, rule)| rule(user));
        let allowed = rules.fold(self.base.clone(), |all, (scopes, _)| all.with(scopes));
        let granted = Scopes::of(asked.iter().filter(|scope| allowed.contains(scope)));
        match granted.is_empty() && !asked.is_empty() {
            true => Err(Fault::new("invalid_scope", "this user is granted none of these scopes")),
            false => Ok(granted),
        }
    }

    /// Returns the scopes of a grant that still exist here: a rule may have been removed since.
    pub(super) fn remaining(&self, granted: &Scopes) -> Scopes {
        Scopes::of(granted.iter().filter(|scope| self.offered.contains(scope)))
    }
}

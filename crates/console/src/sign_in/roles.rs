//! The visitor of a credential. The settings of the console give it its role.

use outlive::{
    people::{Channel, PeopleConfig, Visitor},
    server::Principal,
};

/// The settings that decide about roles.
pub(crate) struct Roles {
    config: PeopleConfig,
    /// Whether the console has no server, so that it knows no person.
    is_store: bool,
}

impl Roles {
    pub(crate) fn new(config: PeopleConfig, is_store: bool) -> Self {
        Self { config, is_store }
    }

    /// Returns the visitor with a credential. The local user comes by a one-time link, which needs
    /// the key file of the server, and is an operator.
    pub(crate) fn visitor(&self, principal: &Principal, channel: Channel) -> Visitor {
        match self.is_store {
            true => Visitor::operator(),
            false => Visitor::new(principal, &self.config, channel),
        }
    }
}

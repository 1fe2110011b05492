//! The upstream of an entry, as its handler knows it.

use std::sync::{Arc, Weak};

use outlive::server::{Error, Result};

use crate::{member::Member, shared::Shared};

/// The upstream of an entry.
///
/// Weak, because entries are stored in their upstream and in the views of the gateway. A call that
/// runs keeps its upstream, also if it is removed from the settings.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    shared: Weak<Shared>,
    member: Weak<Member>,
}

/// The upstream of a call that runs.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    pub(crate) shared: Arc<Shared>,
    pub(crate) member: Arc<Member>,
}

impl Route {
    pub(crate) fn new(shared: &Arc<Shared>, member: &Arc<Member>) -> Self {
        Self { shared: Arc::downgrade(shared), member: Arc::downgrade(member) }
    }

    /// Returns the upstream.
    ///
    /// # Errors
    ///
    /// If the gateway has ended, or the upstream was removed.
    pub(crate) fn reach(&self) -> Result<Reached> {
        match (self.shared.upgrade(), self.member.upgrade()) {
            (Some(shared), Some(member)) => Ok(Reached { shared, member }),
            _ => Err(Error::new("the upstream of this item was removed; list again")),
        }
    }
}

impl Reached {
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.member.settings().name)
    }
}

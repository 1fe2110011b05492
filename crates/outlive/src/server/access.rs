//! Visibility and required scopes of tools, resources, templates and prompts.
//!
//! An item that is not visible to a caller does not exist for that caller. A caller that lacks a
//! scope gets an error that names the scope.

use std::{fmt, sync::Arc};

use outlive_protocol::{Principal, ProtocolError, Scopes};

/// Defines the setters for visibility and scopes on the builders of all items.
macro_rules! access_setters {
    ($what:literal, $($access:ident).+) => {
        #[doc = concat!("Makes the ", $what, " visible only to principals for which `visible` returns true. For others it does not exist.")]
        pub fn visible_to(
            mut self,
            visible: impl Fn(&outlive_protocol::Principal) -> bool + Send + Sync + 'static,
        ) -> Self {
            self.$($access).+.show_if(visible);
            self
        }

        /// Requires all of these scopes. A call without them gets an error that names them. The
        /// lists of callers that lack a scope omit the item, unless
        /// [`always_listed`](Self::always_listed) is set. The local user on stdio needs no scopes.
        pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
            self.$($access).+.need(scopes);
            self
        }

        /// Lists the item even for callers that lack a required scope, so that their clients can
        /// request the scope on use.
        pub fn always_listed(mut self) -> Self {
            self.$($access).+.list_always();
            self
        }
    };
}

pub(crate) use access_setters;

/// Access rules of a tool, resource, template or prompt.
#[derive(Clone, Default)]
pub(crate) struct Access {
    visible: Option<Arc<Judges>>,
    needed: Scopes,
    /// Whether lists include the item for callers that lack a scope.
    listed: bool,
}

/// Predicate for the principals that can see an item.
type Judges = dyn Fn(&Principal) -> bool + Send + Sync;

impl Access {
    pub(crate) fn show_if(&mut self, visible: impl Fn(&Principal) -> bool + Send + Sync + 'static) {
        self.visible = Some(Arc::new(visible));
    }

    pub(crate) fn need<S: AsRef<str>>(&mut self, scopes: impl IntoIterator<Item = S>) {
        self.needed = self.needed.with(&Scopes::of(scopes));
    }

    pub(crate) fn list_always(&mut self) {
        self.listed = true;
    }

    /// Returns whether the item exists for this principal.
    pub(crate) fn is_visible_to(&self, principal: &Principal) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(principal))
    }

    /// Returns whether lists include the item for this principal.
    pub(crate) fn is_listed_for(&self, principal: &Principal) -> bool {
        (self.listed || principal.may(&self.needed)) && self.is_visible_to(principal)
    }

    /// Checks the scopes of a principal that can see the item.
    pub(crate) fn check(&self, principal: &Principal) -> Result<(), ProtocolError> {
        match principal.may(&self.needed) {
            true => Ok(()),
            false => Err(ProtocolError::MissingScopes { required: self.needed.clone() }),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("needed", &self.needed).finish_non_exhaustive()
    }
}

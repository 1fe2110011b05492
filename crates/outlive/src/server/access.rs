//! Who may know of something, and who may use it.
//!
//! Two questions, because they have two answers: to whom a thing is not visible it does not exist;
//! who lacks a scope is told which one, and can go and get it.

use std::{fmt, sync::Arc};

use outlive_protocol::{Principal, ProtocolError, Scopes};

/// What all builders say of who may know of what they make, and who may use it.
macro_rules! access_setters {
    ($what:literal, $($access:ident).+) => {
        #[doc = concat!("Shows the ", $what, " only to callers for whom this is true. To all others it does not exist.")]
        pub fn visible_to(
            mut self,
            visible: impl Fn(&outlive_protocol::Principal) -> bool + Send + Sync + 'static,
        ) -> Self {
            self.$($access).+.show_if(visible);
            self
        }

        /// Needs these scopes, all of them: a call without them is refused, and the client is told which
        /// to ask for. It is not in the lists of callers who lack one; see also
        /// [`always_listed`](Self::always_listed). The local user, on stdio, needs none.
        pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
            self.$($access).+.need(scopes);
            self
        }

        /// Is in the lists also of callers who lack a scope for it, so that their clients can ask for
        /// that when it is used.
        pub fn always_listed(mut self) -> Self {
            self.$($access).+.list_always();
            self
        }
    };
}

pub(crate) use access_setters;

/// Who may know of a tool, resource, template or prompt, and who may use it.
#[derive(Clone, Default)]
pub(crate) struct Access {
    visible: Option<Arc<Judges>>,
    needed: Scopes,
    /// Whether it is in the lists of those who lack a scope for it.
    listed: bool,
}

/// Whether something exists for a caller.
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

    /// Whether it exists for this caller.
    pub(crate) fn is_visible_to(&self, principal: &Principal) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(principal))
    }

    /// Whether it is in the lists of this caller.
    pub(crate) fn is_listed_for(&self, principal: &Principal) -> bool {
        (self.listed || principal.may(&self.needed)) && self.is_visible_to(principal)
    }

    /// Whether this caller, for whom it exists, may use it.
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

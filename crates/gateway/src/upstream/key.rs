//! The key of an upstream connection: who shares it.

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
};

use outlive::{client::relay::CapabilityClass, server::layer::Call};

use crate::settings::{InputForwarding, Isolation, Upstream};

/// Clients that share an upstream connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Shared,
    /// Key of the principal.
    Principal(Arc<str>),
    /// Key of the principal, and a number of the session in this process.
    Session(Arc<str>, u64),
}

/// Key of an upstream connection within its upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionKey {
    pub(crate) owner: Owner,
    pub(crate) class: CapabilityClass,
    /// Whether the credential belongs to the principal.
    is_users: bool,
}

/// Key of a catalog within its upstream: clients with the same key see the same lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CatalogKey {
    pub(crate) class: CapabilityClass,
    /// Key of the principal, if the credential belongs to it.
    pub(crate) principal: Option<Arc<str>>,
}

/// Rules that assign calls to owners, apart from the settings of an upstream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnerRules {
    /// Whether anonymous callers are unrelated to each other.
    pub(crate) open_listener: bool,
}

/// Key of anonymous principals.
pub(crate) const ANONYMOUS: &str = "anonymous";

/// Number of a legacy session, unique in this process.
struct SessionNumber(u64);

static NEXT_SESSION: AtomicU64 = AtomicU64::new(1);

impl ConnectionKey {
    /// Returns the key of the upstream connection for a call. The second value tells whether the
    /// session of the owner still exists.
    pub(crate) fn of_call(upstream: &Upstream, rules: OwnerRules, call: &Call) -> (Self, Alive) {
        let principal = call.principal().key();
        let (owner, alive) = match upstream.isolation {
            Isolation::Shared => (Owner::Shared, Alive::Always),
            _ if rules.open_listener && principal == ANONYMOUS => (Owner::Shared, Alive::Always),
            Isolation::Session => match call.session() {
                Some(session) => {
                    let number = session
                        .state(|| SessionNumber(NEXT_SESSION.fetch_add(1, Ordering::Relaxed)));
                    let alive = Alive::While(Arc::downgrade(&number) as Weak<dyn Send + Sync>);
                    (Owner::Session(principal.into(), number.0), alive)
                }
                None => (Owner::Principal(principal.into()), Alive::Always),
            },
            Isolation::Principal => (Owner::Principal(principal.into()), Alive::Always),
        };
        let declared = CapabilityClass::from_json(call.client_capabilities());
        let class = declared_class(upstream, owner == Owner::Shared, declared);
        (Self { owner, class, is_users: upstream.has_user_credentials() }, alive)
    }

    /// Returns the key of the upstream connection of a principal whose clients declare nothing.
    pub(crate) fn of_principal(upstream: &Upstream, rules: OwnerRules, principal: &str) -> Self {
        let is_shared = upstream.isolation == Isolation::Shared
            || (rules.open_listener && principal == ANONYMOUS);
        let owner = match is_shared {
            true => Owner::Shared,
            false => Owner::Principal(principal.into()),
        };
        let is_users = upstream.has_user_credentials();
        Self { owner, class: CapabilityClass::NONE, is_users }
    }

    /// Returns the key of the catalog that is read over the connection.
    pub(crate) fn catalog(&self) -> CatalogKey {
        let principal = match &self.owner {
            Owner::Principal(principal) | Owner::Session(principal, _) if self.is_users => {
                Some(Arc::clone(principal))
            }
            _ => None,
        };
        CatalogKey { class: self.class, principal }
    }

    /// Returns whether the credential belongs to the principal.
    pub(crate) fn is_users(&self) -> bool {
        self.is_users
    }

    /// Returns the key of the connection to a process, which has no credential.
    pub(crate) fn of_process(owner: Owner, class: CapabilityClass) -> Self {
        Self { owner, class, is_users: false }
    }

    /// Returns the key of the upstream connection of a session that has ended.
    pub(crate) fn of_ended_session(principal: &str, class: CapabilityClass) -> Self {
        let number = NEXT_SESSION.fetch_add(1, Ordering::Relaxed);
        Self { owner: Owner::Session(principal.into(), number), class, is_users: false }
    }

    /// Returns the capability class of the upstream connections for clients with a class.
    pub(crate) fn class_for(
        upstream: &Upstream,
        class: CapabilityClass,
        is_unrelated: bool,
    ) -> CapabilityClass {
        let is_shared = is_unrelated || upstream.isolation == Isolation::Shared;
        declared_class(upstream, is_shared, class)
    }

    /// Returns the principal that owns the connection, if it is not shared.
    pub(crate) fn principal(&self) -> Option<&str> {
        match &self.owner {
            Owner::Shared => None,
            Owner::Principal(principal) | Owner::Session(principal, _) => Some(principal),
        }
    }

    /// Returns whether the connections of both keys serve the same clients, or clients of the same
    /// principal.
    pub(crate) fn is_of_same_owner(&self, other: &Self) -> bool {
        self.principal() == other.principal()
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.owner == Owner::Shared
    }
}

/// Returns the capabilities that the gateway declares for a client.
fn declared_class(
    upstream: &Upstream,
    is_shared: bool,
    declared: CapabilityClass,
) -> CapabilityClass {
    // On a shared pipe an input request could reach another principal, unless calls are alone.
    let is_ambiguous = is_shared && upstream.is_command() && upstream.max_concurrent > 1;
    match upstream.input {
        InputForwarding::Client if !is_ambiguous => declared,
        _ => declared & CapabilityClass::APPS,
    }
}

/// Whether the session of an upstream connection still exists.
#[derive(Clone)]
pub(crate) enum Alive {
    Always,
    While(Weak<dyn Send + Sync>),
}

impl Alive {
    pub(crate) fn is_alive(&self) -> bool {
        match self {
            Self::Always => true,
            Self::While(session) => session.strong_count() > 0,
        }
    }
}

impl fmt::Debug for Alive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Alive({})", self.is_alive())
    }
}

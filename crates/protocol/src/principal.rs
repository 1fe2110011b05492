//! Who is calling. In every [`Call`](crate::Call), by construction.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::Scopes;

/// The party on whose behalf a request is served.
///
/// Sessions, cursors and everything else that outlives a request is bound to it; an id that
/// belongs to another principal answers exactly like one that does not exist. What a caller may do
/// comes with it, request by request, and is no part of who it is: the same party with more or
/// fewer scopes is the same principal.
#[derive(Clone)]
pub struct Principal {
    kind: Kind,
    scopes: Scopes,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    Local,
    Anonymous,
    /// The name behind [`NAMED`], so that no name makes the key of another kind.
    Named(Arc<str>),
}

const NAMED: &str = "name:";

impl Principal {
    /// The user who owns this process: stdio and in-memory connections. May do everything.
    pub const LOCAL: Self = Self { kind: Kind::Local, scopes: Scopes::NONE };

    /// Nobody in particular: HTTP without an authenticator. Unguessable ids are the credential.
    pub const ANONYMOUS: Self = Self { kind: Kind::Anonymous, scopes: Scopes::NONE };

    /// A caller whom an authenticator knows by name.
    pub fn named(name: &str) -> Self {
        let name = format!("{NAMED}{name}").into();
        Self { kind: Kind::Named(name), scopes: Scopes::NONE }
    }

    /// The principal with this key, without any scope.
    pub fn from_key(key: &str) -> Option<Self> {
        match (key, key.strip_prefix(NAMED)) {
            ("local", _) => Some(Self::LOCAL),
            ("anonymous", _) => Some(Self::ANONYMOUS),
            (_, Some(name)) => Some(Self::named(name)),
            _ => None,
        }
    }

    /// The same party, with leave to do this.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// What its token gives it leave to do. The local user needs none.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Whether it may do what needs this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.kind == Kind::Local || self.scopes.contains(scope)
    }

    /// Whether it may do what needs all of these.
    pub fn may(&self, needed: &Scopes) -> bool {
        needed.is_empty() || self.kind == Kind::Local || self.scopes.includes(needed)
    }

    /// The name an authenticator gave, if one did.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Named(key) => key.strip_prefix(NAMED),
            Kind::Local | Kind::Anonymous => None,
        }
    }

    /// Whether the caller is unknown. Lists of what callers own are not offered to such.
    pub fn is_anonymous(&self) -> bool {
        self.kind == Kind::Anonymous
    }

    /// A text that differs for different principals: for quotas and for what is sealed.
    pub fn key(&self) -> &str {
        match &self.kind {
            Kind::Local => "local",
            Kind::Anonymous => "anonymous",
            Kind::Named(key) => key,
        }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Principal({self})")
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name().unwrap_or_else(|| self.key()))
    }
}

#[cfg(test)]
mod tests {
    use super::Principal;
    use crate::Scopes;

    #[test]
    fn scopes_are_no_part_of_who_somebody_is() {
        let ann = Principal::named("ann");
        let may = ann.clone().with_scopes(Scopes::of(["read"]));
        assert_eq!(ann, may);
        assert_eq!(ann.key(), may.key());
        assert!(may.has_scope("read") && !may.has_scope("write") && !ann.has_scope("read"));
        assert!(may.may(&Scopes::of(["read"])) && !may.may(&Scopes::of(["read", "write"])));
        // What nobody has asked for, everybody may; the local user may all.
        assert!(Principal::ANONYMOUS.may(&Scopes::NONE));
        assert!(!Principal::ANONYMOUS.may(&Scopes::of(["read"])));
        assert!(Principal::LOCAL.may(&Scopes::of(["read"])));
        assert!(Principal::from_key(may.key()).unwrap().scopes().is_empty());
    }
}

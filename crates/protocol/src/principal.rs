//! The authenticated identity of a caller, present in every [`Call`](crate::Call).

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::Scopes;

/// The authenticated identity of a caller.
///
/// Sessions, cursors and everything else that outlives a request belong to a principal. An ID of
/// another principal behaves exactly like one that does not exist. Scopes are a property of each
/// request, not of the identity: equality and hashes ignore them.
#[derive(Clone)]
pub struct Principal {
    kind: Kind,
    scopes: Scopes,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    Local,
    Anonymous,
    /// The name after the prefix [`NAMED`], so that no name equals the key of another kind.
    Named(Arc<str>),
}

const NAMED: &str = "name:";

impl Principal {
    /// The user that owns this process, on stdio and in-memory connections. Has every scope.
    pub const LOCAL: Self = Self { kind: Kind::Local, scopes: Scopes::NONE };

    /// An unauthenticated HTTP client. Unguessable IDs are its only credentials.
    pub const ANONYMOUS: Self = Self { kind: Kind::Anonymous, scopes: Scopes::NONE };

    /// Creates the principal that an authenticator identified by name.
    pub fn named(name: &str) -> Self {
        let name = format!("{NAMED}{name}").into();
        Self { kind: Kind::Named(name), scopes: Scopes::NONE }
    }

    /// Returns the principal with this key, without scopes.
    pub fn from_key(key: &str) -> Option<Self> {
        match (key, key.strip_prefix(NAMED)) {
            ("local", _) => Some(Self::LOCAL),
            ("anonymous", _) => Some(Self::ANONYMOUS),
            (_, Some(name)) => Some(Self::named(name)),
            _ => None,
        }
    }

    /// Sets the scopes.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Scopes) -> Self {
        self.scopes = scopes;
        self
    }

    /// Returns the scopes of the access token. The local user needs none.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Returns whether the principal has a scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.kind == Kind::Local || self.scopes.contains(scope)
    }

    /// Returns whether the principal has all required scopes.
    pub fn may(&self, needed: &Scopes) -> bool {
        needed.is_empty() || self.kind == Kind::Local || self.scopes.includes(needed)
    }

    /// Returns the name from the authenticator.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Named(key) => key.strip_prefix(NAMED),
            Kind::Local | Kind::Anonymous => None,
        }
    }

    /// Returns whether the caller is unauthenticated. Such callers cannot list their objects.
    pub fn is_anonymous(&self) -> bool {
        self.kind == Kind::Anonymous
    }

    /// Returns a unique key of the principal, for quotas and sealed data.
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
    fn principal_identity_ignores_scopes() {
        let ann = Principal::named("ann");
        let may = ann.clone().with_scopes(Scopes::of(["read"]));
        assert_eq!(ann, may);
        assert_eq!(ann.key(), may.key());
        assert!(may.has_scope("read") && !may.has_scope("write") && !ann.has_scope("read"));
        assert!(may.may(&Scopes::of(["read"])) && !may.may(&Scopes::of(["read", "write"])));
        // Every principal satisfies an empty set, and the local user satisfies every set.
        assert!(Principal::ANONYMOUS.may(&Scopes::NONE));
        assert!(!Principal::ANONYMOUS.may(&Scopes::of(["read"])));
        assert!(Principal::LOCAL.may(&Scopes::of(["read"])));
        assert!(Principal::from_key(may.key()).unwrap().scopes().is_empty());
    }
}

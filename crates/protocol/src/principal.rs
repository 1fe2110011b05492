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
/// another principal behaves exactly like one that does not exist. Scopes, the person and the right
/// to decide are properties of each request, not of the identity: equality and hashes ignore them.
#[derive(Clone)]
pub struct Principal {
    kind: Kind,
    scopes: Scopes,
    deciding: bool,
}

#[derive(Clone)]
enum Kind {
    Local,
    Anonymous,
    Named(Arc<Named>),
}

/// Data of a named principal. One allocation, so that principals stay small.
#[derive(Clone)]
struct Named {
    /// The name after the prefix [`NAMED`], so that no name equals the key of another kind.
    key: Box<str>,
    /// Person, if it differs from the name.
    person: Option<Box<str>>,
}

const NAMED: &str = "name:";

/// Person of the local user.
const LOCAL_PERSON: &str = "local";

impl Principal {
    /// The user that owns this process, on stdio and in-memory connections. Has every scope.
    pub const LOCAL: Self = Self { kind: Kind::Local, scopes: Scopes::NONE, deciding: false };

    /// An unauthenticated HTTP client. Unguessable IDs are its only credentials.
    pub const ANONYMOUS: Self =
        Self { kind: Kind::Anonymous, scopes: Scopes::NONE, deciding: false };

    /// Creates the principal that an authenticator identified by name.
    pub fn named(name: &str) -> Self {
        let named = Named { key: format!("{NAMED}{name}").into(), person: None };
        Self { kind: Kind::Named(Arc::new(named)), scopes: Scopes::NONE, deciding: false }
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

    /// Sets the person behind a named principal, for authenticators whose names cover more than the
    /// person, such as the client. Has no effect on the local user and on anonymous callers.
    #[must_use]
    pub fn with_person(mut self, person: impl Into<String>) -> Self {
        if let Kind::Named(named) = &mut self.kind {
            let person: String = person.into();
            Arc::make_mut(named).person = Some(person.into_boxed_str());
        }
        self
    }

    /// Returns the person behind the principal: the same in all clients of that person. Input
    /// requests for people name persons. Anonymous callers have none.
    pub fn person(&self) -> Option<&str> {
        match &self.kind {
            Kind::Local => Some(LOCAL_PERSON),
            Kind::Anonymous => None,
            Kind::Named(named) => named.person.as_deref().or_else(|| self.name()),
        }
    }

    /// Returns the person, if it was set and differs from the name.
    pub(crate) fn set_person(&self) -> Option<&str> {
        match &self.kind {
            Kind::Named(named) => named.person.as_deref(),
            Kind::Local | Kind::Anonymous => None,
        }
    }

    /// Declares that the credential may decide for its person. The MCP endpoint rejects such a
    /// credential, so that no agent has one.
    #[must_use]
    pub fn deciding(mut self) -> Self {
        self.deciding = true;
        self
    }

    /// Returns whether the credential may decide for its person.
    pub fn is_deciding(&self) -> bool {
        self.deciding
    }

    /// Returns whether the caller is the local user. The local user has every scope.
    pub fn is_local(&self) -> bool {
        matches!(self.kind, Kind::Local)
    }

    /// Returns the scopes of the access token. The local user needs none.
    pub fn scopes(&self) -> &Scopes {
        &self.scopes
    }

    /// Returns whether the principal has a scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.is_local() || self.scopes.contains(scope)
    }

    /// Returns whether the principal has all required scopes.
    pub fn may(&self, needed: &Scopes) -> bool {
        needed.is_empty() || self.is_local() || self.scopes.includes(needed)
    }

    /// Returns the name from the authenticator.
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Named(named) => named.key.strip_prefix(NAMED),
            Kind::Local | Kind::Anonymous => None,
        }
    }

    /// Returns whether the caller is unauthenticated. Such callers cannot list their objects.
    pub fn is_anonymous(&self) -> bool {
        matches!(self.kind, Kind::Anonymous)
    }

    /// Returns a unique key of the principal, for quotas and sealed data.
    pub fn key(&self) -> &str {
        match &self.kind {
            Kind::Local => "local",
            Kind::Anonymous => "anonymous",
            Kind::Named(named) => &named.key,
        }
    }
}

impl PartialEq for Principal {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Principal {}

impl Hash for Principal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
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

    #[test]
    fn principal_identity_ignores_person_and_right_to_decide() {
        let editor = Principal::named("iss|ann|editor").with_person("iss|ann");
        let browser = Principal::named("iss|ann|browser").with_person("iss|ann").deciding();
        assert_ne!(editor, browser);
        assert_eq!(editor.person(), browser.person());
        assert_eq!(editor, Principal::named("iss|ann|editor"));
        assert!(browser.is_deciding() && !editor.is_deciding());
        assert_eq!(browser, browser.clone().with_person("iss|ben"));
    }

    #[test]
    fn person_of_principal_without_one_is_its_name() {
        assert_eq!(Principal::named("ann").person(), Some("ann"));
        assert_eq!(Principal::LOCAL.person(), Some("local"));
        assert_eq!(Principal::LOCAL.with_person("ann").person(), Some("local"));
        assert_eq!(Principal::ANONYMOUS.with_person("ann").person(), None);
    }
}

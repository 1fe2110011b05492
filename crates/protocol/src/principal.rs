//! Who is calling. In every [`Call`](crate::Call), by construction.

use std::{fmt, sync::Arc};

/// The party on whose behalf a request is served.
///
/// Sessions, cursors and everything else that outlives a request is bound to it; an id that
/// belongs to another principal answers exactly like one that does not exist.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Kind);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Kind {
    Local,
    Anonymous,
    /// The name behind [`NAMED`], so that no name makes the key of another kind.
    Named(Arc<str>),
}

const NAMED: &str = "name:";

impl Principal {
    /// The user who owns this process: stdio and in-memory connections.
    pub const LOCAL: Self = Self(Kind::Local);

    /// Nobody in particular: HTTP without an authenticator. Unguessable ids are the credential.
    pub const ANONYMOUS: Self = Self(Kind::Anonymous);

    /// A caller whom an authenticator knows by name.
    pub fn named(name: &str) -> Self {
        Self(Kind::Named(format!("{NAMED}{name}").into()))
    }

    /// The principal with this key.
    pub fn from_key(key: &str) -> Option<Self> {
        match (key, key.strip_prefix(NAMED)) {
            ("local", _) => Some(Self::LOCAL),
            ("anonymous", _) => Some(Self::ANONYMOUS),
            (_, Some(name)) => Some(Self::named(name)),
            _ => None,
        }
    }

    /// The name an authenticator gave, if one did.
    pub fn name(&self) -> Option<&str> {
        match &self.0 {
            Kind::Named(key) => key.strip_prefix(NAMED),
            Kind::Local | Kind::Anonymous => None,
        }
    }

    /// Whether the caller is unknown. Lists of what callers own are not offered to such.
    pub fn is_anonymous(&self) -> bool {
        self.0 == Kind::Anonymous
    }

    /// A text that differs for different principals: for quotas and for what is sealed.
    pub fn key(&self) -> &str {
        match &self.0 {
            Kind::Local => "local",
            Kind::Anonymous => "anonymous",
            Kind::Named(key) => key,
        }
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

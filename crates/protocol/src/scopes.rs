//! What a caller has been given leave to do, and what something asks for: words that whoever
//! gives out tokens and the server have agreed upon.

use std::{fmt, sync::Arc};

/// A set of scopes. Cheap to clone; asking it allocates nothing.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Scopes(Option<Arc<[Box<str>]>>);

impl Scopes {
    /// No scope at all.
    pub const NONE: Self = Self(None);

    /// The set of these. What can be no scope, because of a space, a quote or a letter beyond ASCII,
    /// is left out.
    pub fn of<S: AsRef<str>>(scopes: impl IntoIterator<Item = S>) -> Self {
        let mut all: Vec<Box<str>> = scopes
            .into_iter()
            .filter(|scope| is_scope(scope.as_ref()))
            .map(|scope| scope.as_ref().into())
            .collect();
        all.sort_unstable();
        all.dedup();
        Self((!all.is_empty()).then(|| all.into()))
    }

    /// Whether a scope is one of them.
    pub fn contains(&self, scope: &str) -> bool {
        self.slice().binary_search_by(|one| (**one).cmp(scope)).is_ok()
    }

    /// Whether all of these are among them.
    pub fn includes(&self, needed: &Self) -> bool {
        needed.iter().all(|scope| self.contains(scope))
    }

    /// These and those.
    #[must_use]
    pub fn with(&self, more: &Self) -> Self {
        if more.is_empty() {
            return self.clone();
        }
        Self::of(self.iter().chain(more.iter()))
    }

    /// The scopes, in the order of the alphabet.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.slice().iter().map(|scope| &**scope)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.slice().is_empty()
    }

    fn slice(&self) -> &[Box<str>] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// What RFC 6749 calls a scope token: it can stand in a quoted header as it is.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// As they are written: one behind the other, with spaces between them.
impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, scope) in self.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(scope)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Scopes;

    #[test]
    fn a_set_has_each_scope_once_and_in_order() {
        let scopes = Scopes::of(["b", "a", "b", "", "a b", "q\"", "é", "c\\"]);
        assert_eq!(scopes.to_string(), "a b");
        assert!(scopes.contains("a") && !scopes.contains("c"));
        assert!(scopes.includes(&Scopes::of(["b"])) && !scopes.includes(&Scopes::of(["b", "c"])));
        assert!(scopes.includes(&Scopes::NONE) && !Scopes::NONE.includes(&scopes));
        assert_eq!(scopes.with(&Scopes::of(["c"])).to_string(), "a b c");
    }
}

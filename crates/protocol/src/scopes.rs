//! OAuth scopes: those that an access token grants, and those that an operation requires.

use std::{fmt, sync::Arc};

/// A set of scopes. Cheap to clone; lookups do not allocate.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Scopes(Option<Arc<[Box<str>]>>);

impl Scopes {
    /// The empty set.
    pub const NONE: Self = Self(None);

    /// Creates a set. Ignores values that are not valid scopes, such as those with spaces, quotes
    /// or non-ASCII characters.
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

    /// Returns whether the set contains a scope.
    pub fn contains(&self, scope: &str) -> bool {
        self.slice().binary_search_by(|one| (**one).cmp(scope)).is_ok()
    }

    /// Returns whether the set contains all scopes of `needed`.
    pub fn includes(&self, needed: &Self) -> bool {
        needed.iter().all(|scope| self.contains(scope))
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn with(&self, more: &Self) -> Self {
        if more.is_empty() {
            return self.clone();
        }
        Self::of(self.iter().chain(more.iter()))
    }

    /// Returns the scopes in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.slice().iter().map(|scope| &**scope)
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.slice().is_empty()
    }

    fn slice(&self) -> &[Box<str>] {
        self.0.as_deref().unwrap_or_default()
    }
}

/// Returns whether a text is a scope token of RFC 6749, which a quoted header value can contain.
fn is_scope(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e))
}

/// Formats the scopes with spaces between them, as in OAuth.
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
    fn scopes_are_sorted_unique_and_valid() {
        let scopes = Scopes::of(["b", "a", "b", "", "a b", "q\"", "é", "c\\"]);
        assert_eq!(scopes.to_string(), "a b");
        assert!(scopes.contains("a") && !scopes.contains("c"));
        assert!(scopes.includes(&Scopes::of(["b"])) && !scopes.includes(&Scopes::of(["b", "c"])));
        assert!(scopes.includes(&Scopes::NONE) && !Scopes::NONE.includes(&scopes));
        assert_eq!(scopes.with(&Scopes::of(["c"])).to_string(), "a b c");
    }
}

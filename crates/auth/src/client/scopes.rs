//! Ordered sets of scopes.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Scopes(Vec<String>);

impl Scopes {
    /// Parses the scopes of a challenge or a token response.
    pub(super) fn parse(text: &str) -> Self {
        text.split_ascii_whitespace().collect()
    }

    #[must_use]
    pub(super) fn union(mut self, other: &Self) -> Self {
        for scope in &other.0 {
            self.add(scope);
        }
        self
    }

    pub(super) fn add(&mut self, scope: &str) {
        if !self.contains(scope) {
            self.0.push(scope.to_owned());
        }
    }

    pub(super) fn contains(&self, scope: &str) -> bool {
        self.0.iter().any(|known| known == scope)
    }

    pub(super) fn covers(&self, other: &Self) -> bool {
        other.0.iter().all(|scope| self.contains(scope))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl<S: AsRef<str>> FromIterator<S> for Scopes {
    fn from_iter<I: IntoIterator<Item = S>>(scopes: I) -> Self {
        let mut all = Self::default();
        scopes.into_iter().for_each(|scope| all.add(scope.as_ref()));
        all
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

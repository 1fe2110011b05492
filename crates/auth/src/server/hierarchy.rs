//! Scope hierarchy: broad scopes that include narrow ones.

use std::collections::{BTreeMap, BTreeSet};

use outlive_protocol::Scopes;

/// Map from a scope to the scopes that it implies.
#[derive(Clone, Debug, Default)]
pub(super) struct Hierarchy(BTreeMap<Box<str>, BTreeSet<Box<str>>>);

impl Hierarchy {
    pub(super) fn imply<S: AsRef<str>>(
        &mut self,
        broad: &str,
        narrow: impl IntoIterator<Item = S>,
    ) {
        let implied = self.0.entry(broad.into()).or_default();
        implied.extend(narrow.into_iter().map(|scope| scope.as_ref().into()));
    }

    /// Returns these scopes and all scopes that they imply.
    pub(super) fn closure<'a>(&self, granted: impl Iterator<Item = &'a str>) -> Scopes {
        let mut all: BTreeSet<&str> = BTreeSet::new();
        let mut open: Vec<&str> = granted.collect();
        while let Some(scope) = open.pop() {
            if all.insert(scope) {
                open.extend(self.0.get(scope).into_iter().flatten().map(|narrow| &**narrow));
            }
        }
        Scopes::of(all)
    }
}

#[cfg(test)]
mod tests {
    use super::Hierarchy;

    // ARS-08
    #[test]
    fn broad_scope_implies_narrow_scopes_transitively() {
        let mut hierarchy = Hierarchy::default();
        hierarchy.imply("admin", ["write"]);
        hierarchy.imply("write", ["read"]);
        // Cycles are allowed.
        hierarchy.imply("read", ["read", "write"]);
        hierarchy.imply("other", ["more"]);
        assert_eq!(hierarchy.closure(["admin"].into_iter()).to_string(), "admin read write");
        assert_eq!(hierarchy.closure(["x"].into_iter()).to_string(), "x");
    }
}

//! The names under which clients see the tools and prompts of upstreams.
//!
//! A name depends only on the upstream, its own name and the names before it, so it is the same in
//! every list, and an upstream at the end of the file renames nothing.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// Separator between prefix and name. Single underscores occur in names.
const BETWEEN: &str = "__";

/// Longest name that all models accept.
const MAX_NAME: usize = 64;

/// Names that belong to the server or the gateway.
pub(crate) const RESERVED: [&str; 6] =
    ["task_result", "task_cancel", "task_answer", "find_tools", "call_tool", "upstream_problems"];

/// Names of one list, in its order.
#[derive(Debug, Default)]
pub(crate) struct Names {
    taken: HashSet<String>,
}

impl Names {
    /// Creates names of which some are taken, such as those of the server's own tools.
    pub(crate) fn with<'a>(taken: impl IntoIterator<Item = &'a String>) -> Self {
        Self { taken: taken.into_iter().cloned().collect() }
    }

    /// Returns the name of an item of an upstream, and takes it.
    pub(crate) fn take(&mut self, upstream: &str, prefix: &str, name: &str, own: &str) -> String {
        let whole = match prefix {
            "" => name.to_owned(),
            prefix => format!("{prefix}{BETWEEN}{name}"),
        };
        let is_free =
            is_valid(&whole) && !RESERVED.contains(&whole.as_str()) && !self.taken.contains(&whole);
        let shown = if is_free { whole } else { with_suffix(&whole, upstream, own) };
        // Two items of one upstream with the same own name differ in nothing; the first one is
        // called, and the second is not listed by the caller of this function.
        self.taken.insert(shown.clone());
        shown
    }
}

/// Returns whether all models accept a name.
fn is_valid(name: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-');
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(is_allowed)
}

/// Cuts a name and appends six digits of a hash of the upstream and the own name.
fn with_suffix(name: &str, upstream: &str, own: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(upstream.as_bytes());
    hash.update([0]);
    hash.update(own.as_bytes());
    let digest = hash.finalize();
    let suffix = format!("_{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
    let allowed = name.chars().map(|char| match char {
        char if char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-') => char,
        _ => '_',
    });
    let mut shown: String = allowed.take(MAX_NAME - suffix.len()).collect();
    shown.push_str(&suffix);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(names: &mut Names, prefix: &str, name: &str) -> String {
        names.take("files", prefix, name, name)
    }

    #[test]
    fn ordinary_name_gets_its_prefix() {
        let mut names = Names::default();
        assert_eq!(take(&mut names, "files", "read"), "files__read");
        assert_eq!(take(&mut names, "", "read"), "read");
    }

    #[test]
    fn taken_reserved_long_and_foreign_names_get_a_suffix() {
        let mut names = Names::default();
        assert_eq!(take(&mut names, "", "read"), "read");
        let second = names.take("other", "", "read", "read");
        assert!(second.starts_with("read_") && second.len() == 11, "{second}");
        assert!(take(&mut names, "", "find_tools").starts_with("find_tools_"));
        let long = take(&mut names, "files", &"x".repeat(80));
        assert_eq!(long.len(), 64);
        let foreign = take(&mut names, "files", "größe lesen");
        assert!(foreign.starts_with("files__gr__e_lesen_"), "{foreign}");
    }

    #[test]
    fn suffix_depends_only_on_upstream_and_name() {
        let (mut first, mut second) = (Names::default(), Names::default());
        take(&mut second, "", "something");
        let name = "x".repeat(70);
        assert_eq!(take(&mut first, "files", &name), take(&mut second, "files", &name));
    }
}

//! Public items are documented: `#[doc(hidden)] pub` is allowed only in a module `__private`, for
//! macros.

use super::findings::Findings;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.source_files() {
        for hidden in tree.facts(&file.path).iter().flat_map(|facts| &facts.hidden) {
            let message = format!(
                "`{}` is public and hidden; document it, make it private, or move it to `__private`",
                hidden.name
            );
            findings.add(&file.path, hidden.line, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn hidden_public_item_outside_private_is_finding() {
        let text = "#[doc(hidden)]\npub mod __private { #[doc(hidden)] pub use a::B; }\n\
                    impl C { #[doc(hidden)] pub fn d() {} #[doc(hidden)] fn e() {} }\n";
        let found = found(check, &[("crates/x/src/lib.rs", text)]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("crates/x/src/lib.rs:3: `d`"), "{found:?}");
    }
}

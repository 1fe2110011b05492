//! `mod.rs` and `lib.rs` contain only docs, `mod` and `use`. A module with children is `x/mod.rs`,
//! not `x.rs`.

use super::findings::Findings;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.source_files() {
        let path = file.path.as_str();
        let is_root = path.ends_with("/mod.rs") || path.ends_with("/lib.rs");
        if let (true, Some(facts)) = (is_root, tree.facts(path))
            && let Some(first) = facts.logic.first()
        {
            let message = format!(
                "a module root has only docs, `mod` and `use`; move `{}` and {} further items to a named file",
                first.name,
                facts.logic.len() - 1
            );
            findings.add(path, first.line, message);
        }
        let stem = path.strip_suffix(".rs").unwrap_or(path);
        let is_plain = !is_root && !path.ends_with("/main.rs");
        let has_children = tree
            .facts(path)
            .is_some_and(|facts| facts.scopes.iter().any(|scope| !scope.files.is_empty()));
        if is_plain && has_children {
            let message = format!("a module with children; move it to {stem}/mod.rs");
            findings.add(path, 1, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn module_root_with_items_is_finding() {
        let found = found(
            check,
            &[
                ("crates/x/src/lib.rs", "//! X.\npub mod a;\npub mod t { pub use crate::a::A; }\n"),
                ("crates/x/src/a/mod.rs", "mod b;\nuse b::B;\nstruct A;\nimpl A {}\n"),
                ("crates/x/src/a/b.rs", "struct B;\n"),
                ("crates/m/src/lib.rs", "mod a;\n#[proc_macro]\npub fn f() {}\n"),
            ],
        );
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/x/src/a/mod.rs:3: "), "{found:?}");
        assert!(found[0].contains("`struct A` and 1 further"), "{found:?}");
    }

    #[test]
    fn file_with_child_modules_is_finding_unless_they_are_tests() {
        let found = found(
            check,
            &[
                ("crates/x/src/a.rs", "mod b;\n"),
                ("crates/x/src/c.rs", "#[cfg(test)]\nmod tests;\n"),
                ("crates/x/src/main.rs", "mod a;\nfn main() {}\n"),
            ],
        );
        assert_eq!(
            found,
            ["crates/x/src/a.rs:1: a module with children; move it to crates/x/src/a/mod.rs"]
        );
    }
}

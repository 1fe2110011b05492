//! No file imports a file that imports it, directly or through others.
//!
//! Nodes are files. A name through a `pub use` is an import of the file that defines it. Tests are
//! excluded. Every file in a cycle is one finding, with the shortest cycle through it.

use super::findings::Findings;
use super::tree::Tree;
use crate::rust::{Graph, Import, Krate};

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for (path, error) in tree.unreadable() {
        findings.add(path, 1, format!("this is not Rust: {error}"));
    }
    for krate in tree.crates() {
        let imports = krate.imports();
        let edges = imports.iter().map(|import| (import.from, import.to));
        let graph = Graph::new(krate.files.len(), edges);
        for (file, path) in krate.files.iter().enumerate() {
            if let Some(cycle) = graph.cycle(file) {
                let (line, shown) = shown(&cycle, &krate, &imports);
                findings.add(path, line, shown);
            }
        }
    }
}

/// Returns the line of the first import, and `a.rs:3 (x::Y) → b.rs:9 (z::W) → a.rs`.
fn shown(cycle: &[usize], krate: &Krate<'_>, imports: &[Import]) -> (usize, String) {
    let mut first = 1;
    let mut text = "in a cycle: ".to_owned();
    for (at, &file) in cycle.iter().enumerate() {
        let next = cycle[(at + 1) % cycle.len()];
        let import = imports.iter().find(|import| import.from == file && import.to == next);
        if let Some(Import { line, name, .. }) = import {
            first = if at == 0 { *line } else { first };
            text += &format!("{}:{line} ({name}) → ", short(krate.files[file]));
        }
    }
    (first, text + short(krate.files[cycle[0]]))
}

fn short(path: &str) -> &str {
    path.split_once("/src/").map_or(path, |(_, short)| short)
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn files_in_cycle_are_findings_with_their_imports() {
        let found = found(
            check,
            &[
                ("crates/x/src/lib.rs", "mod a;\nmod b;\nmod c;\npub use a::A;\n"),
                ("crates/x/src/a.rs", "\nuse crate::b::B;\npub struct A;\n"),
                ("crates/x/src/b.rs", "use crate::A;\npub struct B;\n"),
                ("crates/x/src/c.rs", "use crate::b::B;\n"),
            ],
        );
        assert_eq!(
            found,
            [
                "crates/x/src/a.rs:2: in a cycle: a.rs:2 (crate::b::B) → b.rs:1 (crate::A) → a.rs",
                "crates/x/src/b.rs:1: in a cycle: b.rs:1 (crate::A) → a.rs:2 (crate::b::B) → b.rs",
            ]
        );
    }

    #[test]
    fn imports_of_tests_are_excluded_from_cycles() {
        let b = "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }\n";
        let files = [
            ("crates/x/src/lib.rs", "mod a;\nmod b;\n"),
            ("crates/x/src/a.rs", "use crate::b::B;\npub struct A;\n"),
            ("crates/x/src/b.rs", b),
            ("crates/x/src/b/tests.rs", "use crate::a::A;\n"),
        ];
        assert!(found(check, &files).is_empty());
    }

    #[test]
    fn unparsable_file_is_finding() {
        assert!(found(check, &[("crates/x/src/lib.rs", "fn {\n")])[0].contains("not Rust"));
    }
}

//! Every file starts with a `//!` comment about its purpose.

use super::findings::Findings;
use super::tree::Tree;

pub(super) const FOLDERS: &[&str] =
    &["crates/", "xtask/src/", "conformance/", "examples/", "benches/", "testbench/", "apps/"];

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let product = tree.product_files();
    let others = tree
        .rust_files()
        .filter(|file| FOLDERS[1..].iter().any(|folder| file.path.starts_with(folder)));
    for file in product.chain(others) {
        if !file.text.starts_with("//!") {
            findings.add(
                &file.path,
                1,
                "start the file with `//!`: its purpose and its place in the path of a request",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn file_without_module_comment_is_finding() {
        let files = [
            ("crates/wire/src/a.rs", "//! A.\n"),
            ("crates/wire/src/b.rs", "use x;\n"),
            ("examples/src/bin/c.rs", "// C\n"),
            ("crates/wire/tests/it/main.rs", "mod d;\n"),
        ];
        let found = found(check, &files);
        assert_eq!(found.len(), 2);
        assert!(found[0].starts_with("crates/wire/src/b.rs:1:"));
        assert!(found[1].starts_with("examples/src/bin/c.rs:1:"));
    }
}

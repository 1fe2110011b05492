//! Nothing is switched off: no ignored test, no ignored doc example, nothing left to do.

use super::findings::Findings;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust_files() {
        for line in file.lines() {
            if line.code.contains("#[ignore") {
                findings.add(
                    &file.path,
                    line.number,
                    "a test that is ignored tests nothing; make it run or remove it",
                );
            }
            if line.code.contains("todo!(") || line.code.contains("unimplemented!(") {
                findings.add(
                    &file.path,
                    line.number,
                    "finish it, or return an error that says what is missing",
                );
            }
            if is_ignored_example(&line.comment) {
                findings.add(&file.path, line.number, EXAMPLE);
            }
        }
    }
    for file in tree.files().iter().filter(|file| file.path.ends_with(".md")) {
        for (index, line) in file.text.lines().enumerate() {
            if is_ignored_example(line) {
                findings.add(&file.path, index + 1, EXAMPLE);
            }
        }
    }
}

const EXAMPLE: &str = "every example compiles; use `no_run` for one that must not run, `text` for one that is not Rust";

/// A fence whose info string has `ignore` or `ignore-…` among its words.
fn is_ignored_example(line: &str) -> bool {
    line.trim_start().strip_prefix("```").is_some_and(|info| {
        let mut words = info.split(|char: char| char == ',' || char.is_whitespace());
        words.any(|word| word == "ignore" || word.starts_with("ignore-"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn tests_and_examples_run() {
        let text = "//! ```ignore\n/// ```rust,ignore-windows\n#[test]\n#[ignore = \"slow\"]\nfn a() { todo!() }\n\
                    /// ```no_run\n/// Do not ignore.\n// let it be: unimplemented!()\nlet text = \"#[ignore]\";\n";
        let found = found(check, &[("a.rs", text)]);
        let lines: Vec<&str> = found.iter().map(|finding| &finding[..6]).collect();
        assert_eq!(lines, ["a.rs:1", "a.rs:2", "a.rs:4", "a.rs:5"]);
    }

    #[test]
    fn pages_are_examples_too() {
        assert_eq!(
            found(check, &[("README.md", "# A\n\n```rust,ignore\nfn a();\n```\n")]).len(),
            1
        );
    }
}

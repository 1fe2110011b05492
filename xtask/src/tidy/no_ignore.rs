//! Nothing is disabled: no ignored test, no ignored doc example, no `todo!`.

use super::findings::Findings;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.rust_files() {
        for line in file.lines() {
            if line.code.contains("#[ignore") {
                findings.add(
                    &file.path,
                    line.number,
                    "an ignored test tests nothing; make it run or remove it",
                );
            }
            if line.code.contains("todo!(") || line.code.contains("unimplemented!(") {
                findings.add(
                    &file.path,
                    line.number,
                    "finish the code, or return an error that names the missing part",
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

/// Whether a line is a fence whose info string contains `ignore` or `ignore-…`.
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
    fn ignored_tests_examples_and_todos_are_findings() {
        let text = "//! ```ignore\n/// ```rust,ignore-windows\n#[test]\n#[ignore = \"slow\"]\nfn a() { todo!() }\n\
                    /// ```no_run\n/// Do not ignore.\n// let it be: unimplemented!()\nlet text = \"#[ignore]\";\n";
        let found = found(check, &[("a.rs", text)]);
        let lines: Vec<&str> = found.iter().map(|finding| &finding[..6]).collect();
        assert_eq!(lines, ["a.rs:1", "a.rs:2", "a.rs:4", "a.rs:5"]);
    }

    #[test]
    fn ignored_example_in_markdown_is_finding() {
        assert_eq!(
            found(check, &[("README.md", "# A\n\n```rust,ignore\nfn a();\n```\n")]).len(),
            1
        );
    }
}

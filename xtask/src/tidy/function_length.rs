//! A function has at most 60 lines of code, counted as clippy does: without comments and empty
//! lines.

use super::findings::Findings;
use super::tree::Tree;

const LIMIT: usize = 60;

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    for file in tree.source_files() {
        let Some(facts) = tree.facts(&file.path) else { continue };
        for function in &facts.functions {
            let inside = file.lines().iter().filter(|line| {
                function.open < line.number
                    && line.number < function.close
                    && !line.code.trim().is_empty()
            });
            let length = inside.count();
            if length > LIMIT {
                let message =
                    format!("`{}` has {length} lines of code; the limit is {LIMIT}", function.name);
                findings.add(&file.path, function.open, message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::check;

    #[test]
    fn function_over_60_lines_is_finding() {
        let text =
            |lines: usize| format!("fn a() {{\n{}\n    // Why.\n}}\n", "    b();\n".repeat(lines));
        assert!(found(check, &[("crates/x/src/a.rs", &text(60))]).is_empty());
        assert_eq!(
            found(check, &[("crates/x/src/a.rs", &text(61))]),
            ["crates/x/src/a.rs:1: `a` has 61 lines of code; the limit is 60"]
        );
        assert!(found(check, &[("crates/x/src/a/tests.rs", &text(61))]).is_empty());
    }
}

//! The entry pages exist, and the README names the command that CI runs.

use super::findings::Findings;
use super::tree::Tree;

pub(super) const FILES: &[&str] = &["ARCHITECTURE.md", "CHANGELOG.md", README, CI];

const README: &str = "README.md";
const CI: &str = ".ci/run";

pub(super) fn check(tree: &Tree, findings: &mut Findings) {
    let (Some(readme), Some(ci)) = (tree.get(README), tree.get(CI)) else { return };
    let Some(command) = ci.text.lines().map(str::trim).rfind(|line| line.starts_with("cargo "))
    else {
        findings.add(
            CI,
            1,
            "no line starts with `cargo `; CI must run the command that the README names",
        );
        return;
    };
    if !code(&readme.text).any(|shown| shown == command) {
        findings.add(
            README,
            1,
            format!("CI runs `{command}`; the README must name exactly this command"),
        );
    }
}

/// Returns the code of a page: lines in fences and text between backticks.
fn code(page: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    page.lines().flat_map(move |line| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return Vec::new();
        }
        // A comment after a command in a fence is not part of it.
        let command = line.split(" #").next().unwrap_or(line).trim();
        if fenced { vec![command] } else { line.split('`').skip(1).step_by(2).collect() }
    })
}

#[cfg(test)]
mod tests {
    use super::super::rules::found;
    use super::{CI, README, check};

    const RUN: &str = "#!/usr/bin/env bash\nset -euo pipefail\ncargo xtask test\n";

    #[test]
    fn readme_with_ci_command_passes() {
        for readme in
            ["Run `cargo xtask test`.\n", "```sh\ncargo xtask test   # ten minutes\n```\n"]
        {
            assert!(found(check, &[(CI, RUN), (README, readme)]).is_empty(), "{readme}");
        }
    }

    #[test]
    fn readme_with_another_command_is_finding() {
        for readme in [
            "Run `cargo test`.\n",
            "cargo xtask test\n",
            "```sh\ncargo xtask test --only fmt\n```\n",
        ] {
            assert_eq!(found(check, &[(CI, RUN), (README, readme)]).len(), 1, "{readme}");
        }
    }
}

//! Subjects of commits: `type(scope): imperative summary`, at most 72 characters.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use regex::Regex;

/// The last commit before the rule.
const SINCE: &str = "c893e1d";

const SUBJECT: &str =
    r"^(feat|fix|perf|refactor|docs|test|build|ci|chore)(\([a-z0-9-]+\))?!?: [a-z`].+$";
const MAX_LENGTH: usize = 72;

/// Returns a finding for each commit since [`SINCE`] whose subject has another form. A checkout without
/// that commit, as a shallow clone is, is checked from its last commit.
pub(super) fn check(root: &Path) -> Result<Vec<String>> {
    let since = format!("{SINCE}..HEAD");
    let subjects = log(root, &[&since]).or_else(|_| log(root, &["-1"]))?;
    let form = Regex::new(SUBJECT).context("the pattern of subjects is broken")?;
    let wrong = subjects.lines().filter(|line| {
        let subject = line.split_once(' ').map_or("", |(_, subject)| subject);
        !form.is_match(subject) || subject.chars().count() > MAX_LENGTH
    });
    Ok(wrong
        .map(|line| {
            format!(
                "commit {line}: commits: write `type(scope): imperative summary` in at most {MAX_LENGTH} characters"
            )
        })
        .collect())
}

fn log(root: &Path, range: &[&str]) -> Result<String> {
    let mut git = Command::new("git");
    git.args(["log", "--no-merges", "--format=%h %s"]).args(range).current_dir(root);
    let output = git.output().context("could not start git, which has the subjects of commits")?;
    if !output.status.success() {
        bail!("`git log` failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use regex::Regex;

    use super::SUBJECT;

    #[test]
    fn commit_subject_has_type_scope_and_summary() {
        let form = Regex::new(SUBJECT).unwrap();
        for right in ["fix(engine): keep leases", "docs: say why", "feat(cli)!: rename a flag"] {
            assert!(form.is_match(right), "{right}");
        }
        for wrong in ["Engine: keep leases", "fix(engine) keep", "wip", "fix(Engine): keep"] {
            assert!(!form.is_match(wrong), "{wrong}");
        }
    }
}

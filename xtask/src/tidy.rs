//! `cargo xtask tidy`: the rules of this project that neither rustfmt nor clippy knows.
//!
//! A rule is one file in `tidy/`: a function from the project's files to findings, so that its
//! tests are texts. [`RULES`] is the list. Each rule names the paths it looks at, and a path that
//! is gone is a finding too: a moved folder must not turn a rule into silence.

mod architecture;
mod era_wall;
mod file_head;
mod file_size;
mod floors;
mod manifest;
mod method_names;
mod no_glob_reexport;
mod no_ignore;
mod one_way_out;
mod private_words;
mod pure_eras;
mod requirements;
mod source;
mod tree;

use std::time::Instant;

use anyhow::{Result, bail};

use self::tree::Tree;
use crate::args::Args;
use crate::process;

struct Rule {
    name: &'static str,
    /// What the rule reads. A path that ends with `/` is a folder.
    paths: &'static [&'static str],
    check: fn(&Tree, &mut Findings),
}

const RULES: &[Rule] = &[
    Rule { name: "file-head", paths: file_head::FOLDERS, check: file_head::check },
    Rule { name: "file-size", paths: &[file_size::ALLOWED], check: file_size::check },
    Rule { name: "era-wall", paths: &[era_wall::ERAS, era_wall::VERSIONS], check: era_wall::check },
    Rule { name: "method-names", paths: &[method_names::METHODS], check: method_names::check },
    Rule { name: "floors", paths: floors::MANIFESTS, check: floors::check },
    Rule { name: "pure-eras", paths: &[era_wall::ERAS], check: pure_eras::check },
    Rule { name: "no-ignore", paths: &[], check: no_ignore::check },
    Rule { name: "no-glob-reexport", paths: &[], check: no_glob_reexport::check },
    Rule { name: "one-way-out", paths: &[one_way_out::PRINT], check: one_way_out::check },
    Rule { name: "private-words", paths: &[], check: private_words::check },
    Rule {
        name: "requirements",
        paths: &[requirements::TABLE, requirements::IDS],
        check: requirements::check,
    },
    Rule { name: "paths-exist", paths: &[], check: paths_exist },
    Rule { name: "architecture", paths: architecture::FILES, check: architecture::check },
];

pub(crate) fn run(args: Args) -> Result<()> {
    args.finish()?;
    let start = Instant::now();
    let tree = Tree::read(process::root())?;
    let mut findings = Vec::new();
    for rule in RULES {
        findings.extend(rule.findings(&tree));
    }
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("tidy found {}; the rules are in xtask/src/tidy.rs", findings.len());
    }
    eprintln!(
        "tidy: {} rules, {} files, {} ms",
        RULES.len(),
        tree.files().len(),
        start.elapsed().as_millis()
    );
    Ok(())
}

impl Rule {
    /// What the rule has to say, in the order of the files, as `path:line: rule: message`.
    fn findings(&self, tree: &Tree) -> Vec<String> {
        let mut findings = Findings::default();
        (self.check)(tree, &mut findings);
        findings.0.sort();
        let shown = |(path, line, message)| format!("{path}:{line}: {}: {message}", self.name);
        findings.0.into_iter().map(shown).collect()
    }
}

/// What a rule objects to: path, line, message.
#[derive(Default)]
struct Findings(Vec<(String, usize, String)>);

impl Findings {
    fn add(&mut self, path: &str, line: usize, message: impl Into<String>) {
        self.0.push((path.to_owned(), line, message.into()));
    }
}

/// Every path that a rule looks at must be there.
fn paths_exist(tree: &Tree, findings: &mut Findings) {
    for rule in RULES {
        for path in rule.paths {
            if !tree.has(path) {
                let message = format!(
                    "rule `{}` looks here and nothing is here; write it, or move the rule with the code",
                    rule.name
                );
                findings.add(path, 1, message);
            }
        }
    }
}

/// What one rule finds in files given as path and text, as `path:line: message`.
#[cfg(test)]
fn found(check: fn(&Tree, &mut Findings), files: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Findings::default();
    check(&Tree::of(files), &mut findings);
    findings.0.sort();
    findings
        .0
        .into_iter()
        .map(|(path, line, message)| format!("{path}:{line}: {message}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{RULES, found, paths_exist};

    #[test]
    fn a_path_that_is_gone_is_a_finding() {
        let paths = RULES.iter().flat_map(|rule| rule.paths);
        let paths = paths.map(|path| {
            if path.ends_with('/') { format!("{path}mod.rs") } else { (*path).to_owned() }
        });
        let paths: Vec<String> = paths.collect();
        let there: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        assert!(found(paths_exist, &there).is_empty());

        let moved: Vec<(&str, &str)> =
            there.into_iter().filter(|(path, _)| !path.contains("/era/")).collect();
        let findings = found(paths_exist, &moved);
        assert_eq!(findings.len(), 2, "era-wall and pure-eras look there: {findings:?}");
    }
}

//! The list of rules, and the command that checks them.

use super::{
    allow, any_objects, architecture, commits, era_wall, file_head, file_size, floors,
    function_length, hidden_items, import_cycles, layers, method_names, module_roots,
    no_glob_reexport, no_ignore, old_names, one_way_out, plots, private_words, pure_eras,
    requirements, trait_size, words,
};
use crate::tidy::ceilings::{CEILINGS, Ceilings, Counts, Verdict};
use crate::tidy::findings::Findings;
use crate::tidy::tree::Tree;
use anyhow::{Context, Result, bail};
use std::fs;
use std::time::Instant;
use xtask::args::Args;
use xtask::process;

pub(super) struct Rule {
    name: &'static str,
    /// The paths that the rule reads. A path that ends with `/` is a folder.
    paths: &'static [&'static str],
    check: fn(&Tree, &mut Findings),
}

pub(super) const RULES: &[Rule] = &[
    Rule { name: "file-head", paths: file_head::FOLDERS, check: file_head::check },
    Rule { name: "file-size", paths: &[], check: file_size::check },
    Rule { name: "allowed", paths: &[allow::ALLOWED], check: allow::check },
    Rule {
        name: "era-wall",
        paths: &[era_wall::ERAS, era_wall::RULES, era_wall::VERSIONS],
        check: era_wall::check,
    },
    Rule { name: "method-names", paths: &[method_names::METHODS], check: method_names::check },
    Rule { name: "floors", paths: floors::MANIFESTS, check: floors::check },
    Rule { name: "pure-eras", paths: &[era_wall::ERAS, era_wall::RULES], check: pure_eras::check },
    Rule { name: "no-ignore", paths: &[], check: no_ignore::check },
    Rule { name: "no-glob-reexport", paths: &[], check: no_glob_reexport::check },
    Rule { name: "one-way-out", paths: &[one_way_out::PRINT], check: one_way_out::check },
    Rule { name: "private-words", paths: &[], check: private_words::check },
    Rule {
        name: "requirements",
        paths: &[requirements::TABLE, requirements::IDS],
        check: requirements::check,
    },
    Rule { name: "layer-places", paths: &[layers::LAYERS], check: layers::check_places },
    Rule { name: "paths-exist", paths: &[words::WORDS], check: paths_exist },
    Rule { name: "plots", paths: plots::PATHS, check: plots::check },
    Rule { name: "architecture", paths: architecture::FILES, check: architecture::check },
];

/// Rules with ceilings in `xtask/ceilings.toml`.
pub(super) const COUNTED: &[Rule] = &[
    Rule { name: "import-cycles", paths: &[], check: import_cycles::check },
    Rule { name: "layers", paths: &[layers::LAYERS], check: layers::check },
    Rule { name: "module-roots", paths: &[], check: module_roots::check },
    Rule { name: "function-length", paths: &[], check: function_length::check },
    Rule { name: "trait-size", paths: &[], check: trait_size::check },
    Rule { name: "dyn-any", paths: &[], check: any_objects::check },
    Rule { name: "doc-hidden", paths: &[], check: hidden_items::check },
    Rule { name: "old-name", paths: &[old_names::NAMES], check: old_names::check },
];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let update = args.flag("--update");
    let show = args.value("--show")?;
    args.finish()?;
    let start = Instant::now();
    let tree = Tree::read(process::root())?;
    if let Some(name) = show {
        return show_rule(&name, &tree);
    }
    let mut findings = Vec::new();
    for rule in RULES {
        findings.extend(rule.findings(&tree));
    }
    let counted = counted_findings(&tree)?;
    let rules = RULES.len() + counted.len();
    findings.extend(judged(counted, &tree, update)?);
    findings.extend(commits::check(process::root())?);
    for finding in &findings {
        println!("{finding}");
    }
    let (lines, code) = product_lines(&tree);
    println!("product source without tests: {lines} lines, {code} of them code");
    if !findings.is_empty() {
        bail!("tidy found {}; the rules are in xtask/src/tidy/", findings.len());
    }
    eprintln!(
        "tidy: {rules} rules, {} files, {} ms",
        tree.files().len(),
        start.elapsed().as_millis()
    );
    Ok(())
}

/// Prints every finding of a rule, including those under a ceiling.
pub(super) fn show_rule(name: &str, tree: &Tree) -> Result<()> {
    let mut rules: Vec<(String, Findings)> =
        RULES.iter().map(|rule| (rule.name.to_owned(), rule.found(tree))).collect();
    rules.extend(counted_findings(tree)?);
    let Some((_, findings)) = rules.iter().find(|(rule, _)| rule == name) else {
        let names: Vec<&str> = rules.iter().map(|(rule, _)| rule.as_str()).collect();
        bail!("unknown rule `{name}`; the rules are {}", names.join(", "));
    };
    let findings = findings.shown(name, |_| true);
    for finding in &findings {
        println!("{finding}");
    }
    eprintln!("{name}: {} findings", findings.len());
    Ok(())
}

/// Returns the findings of each counted rule, word rules included.
fn counted_findings(tree: &Tree) -> Result<Vec<(String, Findings)>> {
    let mut all: Vec<(String, Findings)> =
        COUNTED.iter().map(|rule| (rule.name.to_owned(), rule.found(tree))).collect();
    let text = tree.get(words::WORDS).map_or("", |file| file.text.as_str());
    let words = words::rules(text)?;
    let found = words::check(&words, tree)?;
    all.extend(words.into_iter().map(|rule| rule.name).zip(found));
    Ok(all)
}

/// Compares the counted rules with their ceilings; with `update` it writes changed numbers.
fn judged(counted: Vec<(String, Findings)>, tree: &Tree, update: bool) -> Result<Vec<String>> {
    let text = tree.get(CEILINGS).map_or("", |file| file.text.as_str());
    let mut ceilings = Ceilings::read(text)?;
    let mut said = Vec::new();
    for (rule, findings) in counted {
        let mut counts = Counts::new();
        for (path, _, _) in &findings.0 {
            *counts.entry(part(path)).or_default() += 1;
        }
        match ceilings.judge(&rule, &counts) {
            Verdict::Same => {}
            // The first numbers of a rule are written here too.
            Verdict::Changed => ceilings.set(&rule, counts),
            Verdict::Grown(_) if update && !text.contains(&format!("[{rule}]")) => {
                ceilings.set(&rule, counts)
            }
            Verdict::Grown(parts) => {
                for part in &parts {
                    let (now, ceiling) = (counts[part], ceilings.of(&rule, part));
                    said.extend(findings.shown(&rule, |path| self::part(path) == *part));
                    said.push(format!("{part}: {rule}: {now} findings, allowed {ceiling}"));
                }
            }
        }
    }
    let now = ceilings.written();
    if update {
        fs::write(process::root().join(CEILINGS), &now).context("could not write the ceilings")?;
    } else if now != text {
        said.push(format!(
            "{CEILINGS}:1: ceilings: the numbers have changed and no sum has grown; run `cargo xtask tidy --update`"
        ));
    }
    Ok(said)
}

/// Returns the part of the project that a file belongs to: `crates/wire`, `apps/cli`, `xtask`.
pub(super) fn part(path: &str) -> String {
    let folder = path.split_once("/src/").map_or(path, |(folder, _)| folder);
    let parts = if path.starts_with("crates/") || path.starts_with("apps/") { 2 } else { 1 };
    folder.split('/').take(parts).collect::<Vec<_>>().join("/")
}

/// The lines of the product without its tests, and how many of them contain code.
pub(super) fn product_lines(tree: &Tree) -> (usize, usize) {
    let lines = tree.product_files().flat_map(|file| file.lines_without_tests());
    lines.fold((0, 0), |(all, code), line| {
        (all + 1, code + usize::from(!line.code.trim().is_empty()))
    })
}

impl Rule {
    /// Returns the findings in the order of the files, as `path:line: rule: message`.
    fn findings(&self, tree: &Tree) -> Vec<String> {
        self.found(tree).shown(self.name, |_| true)
    }

    fn found(&self, tree: &Tree) -> Findings {
        let mut findings = Findings::default();
        (self.check)(tree, &mut findings);
        findings.0.sort();
        findings
    }
}

/// Checks that every path of a rule exists.
pub(super) fn paths_exist(tree: &Tree, findings: &mut Findings) {
    for rule in RULES.iter().chain(COUNTED) {
        for path in rule.paths {
            if !tree.has(path) {
                let message = format!(
                    "rule `{}` needs this path, which does not exist; create it, or move the rule with the code",
                    rule.name
                );
                findings.add(path, 1, message);
            }
        }
    }
}

/// The findings of one rule in these files, as `path:line: message`.
#[cfg(test)]
pub(super) fn found(check: fn(&Tree, &mut Findings), files: &[(&str, &str)]) -> Vec<String> {
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
    use super::super::tree::Tree;
    use super::{COUNTED, RULES, found, part, paths_exist, product_lines};

    #[test]
    fn missing_path_of_rule_is_finding() {
        let paths = RULES.iter().chain(COUNTED).flat_map(|rule| rule.paths);
        let paths = paths.map(|path| {
            if path.ends_with('/') { format!("{path}mod.rs") } else { (*path).to_owned() }
        });
        let paths: Vec<String> = paths.collect();
        let there: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        assert!(found(paths_exist, &there).is_empty());

        let moved: Vec<(&str, &str)> =
            there.into_iter().filter(|(path, _)| !path.contains("/era/")).collect();
        let findings = found(paths_exist, &moved);
        assert_eq!(findings.len(), 2, "era-wall and pure-eras need the folder: {findings:?}");
    }

    #[test]
    fn file_belongs_to_its_crate() {
        assert_eq!(part("crates/wire/src/a/b.rs"), "crates/wire");
        assert_eq!(part("xtask/src/a.rs"), "xtask");
        assert_eq!(part("docs/a.md"), "docs");
    }

    #[test]
    fn product_lines_exclude_tests() {
        let tree = Tree::of(&[
            ("crates/a/src/lib.rs", "//! A.\n\nfn a() {}\n#[cfg(test)]\nmod tests {\n}\n"),
            ("crates/a/src/b/tests.rs", "fn c() {}\n"),
            ("xtask/src/main.rs", "fn main() {}\n"),
        ]);
        assert_eq!(product_lines(&tree), (3, 1));
    }
}

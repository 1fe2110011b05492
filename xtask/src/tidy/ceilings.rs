//! `xtask/ceilings.toml`: the allowed number of findings of each counted rule, per crate.
//!
//! The numbers only shrink. A crate that is not listed may have none. `cargo xtask tidy --update`
//! writes the numbers if the sum of each rule has not grown, so that files can move between crates.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

pub(super) const CEILINGS: &str = "xtask/ceilings.toml";

const HEAD: &str = "\
# Maximum number of findings of each counted rule of `cargo xtask tidy`, per crate. The goal is zero.
# Written by `cargo xtask tidy --update`, which refuses to raise the sum of a rule. `cargo xtask tidy --show RULE`
# lists the findings.
";

/// Numbers of findings by crate.
pub(super) type Counts = BTreeMap<String, usize>;

/// Numbers of findings by rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ceilings(BTreeMap<String, Counts>);

/// The comparison of a rule's findings with its ceilings.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    /// The numbers differ, but the sum has not grown. The file must be updated.
    Changed,
    /// These crates exceed their ceilings, and the sum has grown.
    Grown(Vec<String>),
}

impl Ceilings {
    pub(super) fn read(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().with_context(|| format!("{CEILINGS} is not TOML"))?;
        let mut rules = BTreeMap::new();
        for (rule, crates) in table {
            let toml::Value::Table(crates) = crates else {
                bail!("{CEILINGS}: `{rule}` is not a table of crates")
            };
            let mut counts = Counts::new();
            for (name, count) in crates {
                let count = count.as_integer().and_then(|count| usize::try_from(count).ok());
                let count = count
                    .with_context(|| format!("{CEILINGS}: `{rule}.{name}` must be a number"))?;
                counts.insert(name, count);
            }
            rules.insert(rule, counts);
        }
        Ok(Self(rules))
    }

    pub(super) fn judge(&self, rule: &str, now: &Counts) -> Verdict {
        let none = Counts::new();
        let before = self.0.get(rule).unwrap_or(&none);
        if before == now {
            return Verdict::Same;
        }
        if now.values().sum::<usize>() <= before.values().sum() {
            return Verdict::Changed;
        }
        let grown = now.iter().filter(|(name, count)| before.get(*name).unwrap_or(&0) < count);
        Verdict::Grown(grown.map(|(name, _)| name.clone()).collect())
    }

    pub(super) fn of(&self, rule: &str, name: &str) -> usize {
        self.0.get(rule).and_then(|counts| counts.get(name)).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, rule: &str, counts: Counts) {
        self.0.insert(rule.to_owned(), counts);
    }

    pub(super) fn written(&self) -> String {
        let mut text = HEAD.to_owned();
        for (rule, counts) in &self.0 {
            let sum: usize = counts.values().sum();
            let _ = writeln!(text, "\n[{rule}] # {sum} in all");
            for (name, count) in counts {
                let _ = writeln!(text, "\"{name}\" = {count}");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Ceilings, Counts, Verdict};

    fn counts(counts: &[(&str, usize)]) -> Counts {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    fn ceilings() -> Ceilings {
        let mut ceilings = Ceilings::default();
        ceilings.set("cycles", counts(&[("crates/a", 3), ("crates/b", 1)]));
        ceilings
    }

    #[test]
    fn written_ceilings_are_parsed_unchanged() {
        assert_eq!(Ceilings::read(&ceilings().written()).unwrap(), ceilings());
        assert!(Ceilings::read("cycles = 1").is_err());
    }

    #[test]
    fn growing_sum_names_crates_with_more_findings() {
        let now = counts(&[("crates/a", 4), ("crates/b", 1)]);
        assert_eq!(ceilings().judge("cycles", &now), Verdict::Grown(vec!["crates/a".to_owned()]));
        let new = counts(&[("crates/c", 1)]);
        assert_eq!(ceilings().judge("other", &new), Verdict::Grown(vec!["crates/c".to_owned()]));
    }

    #[test]
    fn shrinking_or_moved_sum_requires_update() {
        let fewer = counts(&[("crates/a", 2), ("crates/b", 1)]);
        assert_eq!(ceilings().judge("cycles", &fewer), Verdict::Changed);
        let moved = counts(&[("crates/a", 1), ("crates/c", 3)]);
        assert_eq!(ceilings().judge("cycles", &moved), Verdict::Changed);
        assert_eq!(
            ceilings().judge("cycles", &counts(&[("crates/a", 3), ("crates/b", 1)])),
            Verdict::Same
        );
    }
}

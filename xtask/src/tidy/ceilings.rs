//! `xtask/ceilings.toml`: how many findings of a counted rule each crate may still have.
//!
//! The numbers only shrink. A crate that is not listed may have none. `cargo xtask tidy --update` writes the
//! numbers down as long as no rule has more findings than before in all crates together, so that files
//! can move from one crate to another.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result, bail};

pub(super) const CEILINGS: &str = "xtask/ceilings.toml";

const HEAD: &str = "\
# How many findings of a counted rule of `cargo xtask tidy` each crate may still have; the goal is none.
# Written by `cargo xtask tidy --update`, which refuses to raise the sum of a rule. `cargo xtask tidy --show RULE`
# lists the findings.
";

/// Numbers of findings, by crate.
pub(super) type Counts = BTreeMap<String, usize>;

/// By rule.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ceilings(BTreeMap<String, Counts>);

/// How the findings of a rule compare with its ceilings.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Same,
    /// The numbers differ, and the sum is not higher. The file must say so.
    Changed,
    /// These crates have more than they may, and the sum has grown.
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
                let count =
                    count.with_context(|| format!("{CEILINGS}: `{rule}.{name}` is no number"))?;
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
    fn ceilings_written_are_read_as_they_were() {
        assert_eq!(Ceilings::read(&ceilings().written()).unwrap(), ceilings());
        assert!(Ceilings::read("cycles = 1").is_err());
    }

    #[test]
    fn sum_that_grows_names_the_crates_that_have_more() {
        let now = counts(&[("crates/a", 4), ("crates/b", 1)]);
        assert_eq!(ceilings().judge("cycles", &now), Verdict::Grown(vec!["crates/a".to_owned()]));
        let new = counts(&[("crates/c", 1)]);
        assert_eq!(ceilings().judge("other", &new), Verdict::Grown(vec!["crates/c".to_owned()]));
    }

    #[test]
    fn sum_that_shrinks_or_moves_must_be_written_down() {
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

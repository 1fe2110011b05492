//! The scenarios that are known to fail, from `conformance/baseline.yml`.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::suite::Scenario;

/// The names under `server:`.
#[derive(Debug)]
pub(super) struct Baseline(BTreeSet<String>);

impl Baseline {
    /// Reads the form that the suite reads too: lists of names under `server:` and `client:`. Of
    /// the suite's two kinds of entries only whole scenarios are accepted.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut names = BTreeSet::new();
        let mut in_server = false;
        for (index, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or(line).trim_end();
            let number = index + 1;
            match line.trim().strip_prefix("- ") {
                _ if line.is_empty() || line.starts_with('#') || line.trim().starts_with('#') => {}
                Some(name) if name.contains(':') => {
                    bail!("baseline.yml:{number}: list the whole scenario, not one check")
                }
                Some(name) if in_server && !names.insert(name.trim().to_owned()) => {
                    bail!("baseline.yml:{number}: `{name}` is listed twice");
                }
                Some(_) => {}
                None if line.starts_with("server:") => in_server = true,
                None if line.starts_with("client:") => in_server = false,
                None => bail!(
                    "baseline.yml:{number}: only `server:`, `client:` and lists of names can stand here"
                ),
            }
        }
        Ok(Self(names))
    }

    pub(super) fn lists(&self, scenario: &str) -> bool {
        self.0.contains(scenario)
    }

    /// Refuses a name that the suite does not have: it would excuse nothing and look as if it did.
    pub(super) fn knows_only(&self, scenarios: &[Scenario]) -> Result<()> {
        match self.0.iter().find(|name| !scenarios.iter().any(|scenario| scenario.name == **name)) {
            Some(name) => bail!("baseline.yml lists `{name}`, and the suite has no such scenario"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite::Scenario;
    use super::Baseline;

    #[test]
    fn the_server_part_is_read() {
        let baseline = Baseline::parse(
            "# Why.\nserver:\n  # Tasks.\n  - tasks-lifecycle # soon\n\nclient:\n  - sse-retry\n",
        )
        .unwrap();
        assert!(baseline.lists("tasks-lifecycle"));
        assert!(!baseline.lists("sse-retry"));
        assert!(!Baseline::parse("server: []\nclient: []\n").unwrap().lists("ping"));
    }

    #[test]
    fn what_would_be_misread_is_refused() {
        assert!(Baseline::parse("server:\n  - ping:check-id\n").is_err());
        assert!(Baseline::parse("server:\n  - ping\n  - ping\n").is_err());
        assert!(Baseline::parse("servers:\n  - ping\n").is_err());
    }

    #[test]
    fn a_name_that_the_suite_does_not_have_is_refused() {
        let baseline = Baseline::parse("server:\n  - pong\n").unwrap();
        assert!(baseline.knows_only(&[Scenario::new("ping", &[])]).is_err());
        assert!(baseline.knows_only(&[Scenario::new("pong", &[])]).is_ok());
    }
}

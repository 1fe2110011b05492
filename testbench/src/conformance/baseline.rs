//! The expected failures in `conformance/baseline.yml`.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

use super::leg::Side;
use super::suite::Scenario;

/// The names under `server:` and under `client:`.
#[derive(Debug, Default)]
pub(super) struct Baseline {
    server: BTreeSet<String>,
    client: BTreeSet<String>,
}

impl Baseline {
    /// Parses the format of the suite: lists of names under `server:` and `client:`. Only whole
    /// scenarios are accepted, not single checks.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut baseline = Self::default();
        let mut names = None;
        for (index, line) in text.lines().enumerate() {
            let line = line.split(" #").next().unwrap_or(line).trim_end();
            let number = index + 1;
            match line.trim().strip_prefix("- ") {
                _ if line.is_empty() || line.starts_with('#') || line.trim().starts_with('#') => {}
                Some(name) if name.contains(':') => {
                    bail!("baseline.yml:{number}: list the whole scenario, not one check")
                }
                Some(name) => match &mut names {
                    None => bail!(
                        "baseline.yml:{number}: `{name}` is in no section; move it under `server:` or `client:`"
                    ),
                    Some(side) if !baseline.of(*side).insert(name.trim().to_owned()) => {
                        bail!("baseline.yml:{number}: `{name}` is listed twice");
                    }
                    Some(_) => {}
                },
                None if line.starts_with("server:") => names = Some(Side::Server),
                None if line.starts_with("client:") => names = Some(Side::Client),
                None => {
                    bail!("baseline.yml:{number}: expected `server:`, `client:` or a list entry")
                }
            }
        }
        Ok(baseline)
    }

    fn of(&mut self, side: Side) -> &mut BTreeSet<String> {
        match side {
            Side::Server => &mut self.server,
            Side::Client => &mut self.client,
        }
    }

    pub(super) fn lists(&self, side: Side, scenario: &str) -> bool {
        match side {
            Side::Server => self.server.contains(scenario),
            Side::Client => self.client.contains(scenario),
        }
    }

    /// Rejects a name that the suite does not have, because it would have no effect.
    pub(super) fn knows_only(&self, scenarios: &[Scenario]) -> Result<()> {
        let is_known = |side: Side, name: &&String| {
            scenarios.iter().any(|scenario| scenario.side == side && scenario.name == **name)
        };
        let server = self.server.iter().find(|name| !is_known(Side::Server, name));
        let client = self.client.iter().find(|name| !is_known(Side::Client, name));
        match server.or(client) {
            Some(name) => {
                bail!("baseline.yml lists `{name}`, but the suite has no such scenario; remove it")
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::suite::Scenario;
    use super::{Baseline, Side};

    #[test]
    fn baseline_sections_apply_to_their_side() {
        let baseline = Baseline::parse(
            "# Why.\nserver:\n  # Tasks.\n  - tasks-lifecycle # soon\n\nclient:\n  - sse-retry\n",
        )
        .unwrap();
        assert!(baseline.lists(Side::Server, "tasks-lifecycle"));
        assert!(!baseline.lists(Side::Server, "sse-retry"));
        assert!(baseline.lists(Side::Client, "sse-retry"));
        let empty = Baseline::parse("server: []\nclient: []\n").unwrap();
        assert!(!empty.lists(Side::Server, "ping"));
    }

    #[test]
    fn ambiguous_baseline_is_rejected() {
        assert!(Baseline::parse("server:\n  - ping:check-id\n").is_err());
        assert!(Baseline::parse("server:\n  - ping\n  - ping\n").is_err());
        assert!(Baseline::parse("servers:\n  - ping\n").is_err());
    }

    #[test]
    fn baseline_with_unknown_scenario_is_rejected() {
        let baseline = Baseline::parse("server:\n  - pong\n").unwrap();
        assert!(baseline.knows_only(&[Scenario::new("ping", &[])]).is_err());
        assert!(baseline.knows_only(&[Scenario::new("pong", &[])]).is_ok());
    }
}

//! The legs of a run.

use super::leg::{Leg, Release, Side, Tasks};
use super::suite::{Scenario, Suite};
use super::versions::{LEGACY, MODERN, Wire};
use anyhow::{Context, Result, bail};

/// The old release of the suite in place of a version, because it mixes several versions.
pub(super) const OLD: Wire = "0.1.16";

/// Number of scenarios of the pinned suite in each leg. Another number means that the suite or the
/// format of its list has changed.
pub(super) const COUNTS: [(&str, usize); 12] = [
    ("required-2025-11-25", 33),
    ("required-2026-07-28", 50),
    ("all", 65),
    ("all-2026-07-28", 40),
    ("sqlite-required-2025-11-25", 33),
    ("sqlite-required-2026-07-28", 50),
    ("sqlite-all", 65),
    ("sqlite-all-2026-07-28", 40),
    ("client-2025-11-25", 25),
    ("client-2026-07-28", 39),
    ("old-server", 32),
    ("old-client", 26),
];

/// All legs: the required scenarios of both versions, all scenarios, and all scenarios of
/// 2026-07-28, because `--suite all` runs shared scenarios in 2025-11-25 only. Each leg runs
/// against two servers, one with fast tasks and one with default tasks. The client legs cover every
/// client scenario except skills, which our client does not load. The last legs run the old
/// release.
pub(crate) fn all(suite: &Suite, scenarios: &[Scenario]) -> Result<Vec<Leg>> {
    let required = |side: Side, wire: Wire| -> Result<Leg> {
        let names = suite.required(side, wire)?;
        let kind = if side == Side::Server { "required" } else { "client" };
        Ok(Leg {
            name: format!("{kind}-{wire}"),
            side,
            release: Release::Newest,
            tasks: Tasks::Quick,
            args: words(&["--requirements", wire]),
            scenarios: names.into_iter().map(|name| (name, wire)).collect(),
        })
    };
    let of_servers = || scenarios.iter().filter(|scenario| scenario.side == Side::Server);
    let everything = Leg {
        name: "all".to_owned(),
        side: Side::Server,
        release: Release::Newest,
        tasks: Tasks::Quick,
        args: words(&["--suite", "all"]),
        scenarios: of_servers()
            .map(|scenario| (scenario.name.clone(), scenario.first_wire()))
            .collect(),
    };
    let on_modern =
        of_servers().filter(|scenario| scenario.revisions.iter().any(|it| it == MODERN));
    let modern = Leg {
        name: format!("all-{MODERN}"),
        side: Side::Server,
        release: Release::Newest,
        tasks: Tasks::Quick,
        args: words(&["--suite", "all", "--spec-version", MODERN]),
        scenarios: on_modern.map(|scenario| (scenario.name.clone(), MODERN)).collect(),
    };
    let mut legs =
        vec![required(Side::Server, LEGACY)?, required(Side::Server, MODERN)?, everything, modern];
    legs.extend(legs.iter().map(Leg::by_default).collect::<Vec<_>>());
    legs.extend([required(Side::Client, LEGACY)?, required(Side::Client, MODERN)?]);
    legs.extend([old(suite, Side::Server)?, old(suite, Side::Client)?]);
    for (leg, (name, count)) in legs.iter().zip(COUNTS) {
        if leg.name != name || leg.scenarios.len() != count {
            let found = leg.scenarios.len();
            bail!(
                "the suite lists {found} scenarios for `{name}`, not {count}; after an upgrade, correct COUNTS in {}",
                file!()
            );
        }
    }
    Ok(legs)
}

/// The leg with all scenarios of the old release for one side.
pub(super) fn old(suite: &Suite, side: Side) -> Result<Leg> {
    let scenarios = suite.scenarios(Release::Old)?.into_iter();
    let scenarios = scenarios.filter(|scenario| scenario.side == side);
    Ok(Leg {
        name: if side == Side::Server { "old-server" } else { "old-client" }.to_owned(),
        side,
        release: Release::Old,
        tasks: Tasks::Quick,
        args: words(&["--suite", "all"]),
        scenarios: scenarios.map(|scenario| (scenario.name, OLD)).collect(),
    })
}

/// The legs for one scenario, in each of its versions.
pub(crate) fn for_one(name: &str, scenarios: &[Scenario]) -> Result<Vec<Leg>> {
    let found = scenarios.iter().find(|scenario| scenario.name == name);
    let scenario = found.with_context(|| {
        let close = scenarios
            .iter()
            .filter(|scenario| scenario.name.contains(name) || name.contains(&scenario.name));
        let close: Vec<&str> = close.map(|scenario| scenario.name.as_str()).collect();
        format!("the suite has no scenario `{name}`; similar names: {}", close.join(", "))
    })?;
    let leg = |wire: Wire, version: &[&str]| Leg {
        name: format!("{}-{wire}", name.replace('/', "-")),
        side: scenario.side,
        release: Release::Newest,
        tasks: Tasks::Quick,
        args: words(&[&["--scenario", name], version].concat()),
        scenarios: vec![(name.to_owned(), wire)],
    };
    let has = |wire: &Wire| scenario.revisions.iter().any(|it| it == wire);
    let mut legs: Vec<Leg> = match scenario.revisions.is_empty() {
        // An extension belongs to no version, so `--spec-version` cannot select it.
        true => vec![leg(scenario.first_wire(), &[])],
        false => {
            let wires = [LEGACY, MODERN].into_iter().filter(has);
            wires.map(|wire| leg(wire, &["--spec-version", wire])).collect()
        }
    };
    if scenario.side == Side::Server {
        legs.extend(legs.iter().map(Leg::by_default).collect::<Vec<_>>());
    }
    Ok(legs)
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::suite::Scenario;
    use super::{LEGACY, MODERN, for_one};

    #[test]
    fn single_scenario_runs_in_each_of_its_versions() {
        let scenarios = [
            Scenario::new("tools-list", &["2025-06-18", LEGACY, MODERN]),
            Scenario::new("ping", &["2025-06-18", LEGACY]),
            Scenario::new("tasks-lifecycle", &[]),
        ];
        let wires = |name: &str| -> Vec<&str> {
            for_one(name, &scenarios).unwrap().iter().map(|leg| leg.scenarios[0].1).collect()
        };
        // Each with both task configurations.
        assert_eq!(wires("tools-list"), [LEGACY, MODERN, LEGACY, MODERN]);
        assert_eq!(wires("ping"), [LEGACY, LEGACY]);
        assert_eq!(wires("tasks-lifecycle"), [MODERN, MODERN]);
        assert!(for_one("tools", &scenarios).unwrap_err().to_string().contains("tools-list"));
    }
}

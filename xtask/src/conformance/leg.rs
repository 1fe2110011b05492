//! Which runs of the suite make up the whole, and which scenarios each of them must contain.

use anyhow::{Context, Result, bail};

use super::suite::{Scenario, Suite};

/// The revision that a scenario is played in.
pub(super) type Wire = &'static str;

pub(super) const LEGACY: Wire = "2025-11-25";
pub(super) const MODERN: Wire = "2026-07-28";

/// Who is under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Server,
    Client,
}

/// One run of the suite.
#[derive(Debug)]
pub(super) struct Leg {
    pub(super) name: String,
    pub(super) side: Side,
    /// What is typed behind `conformance server --url …` or `conformance client --command …`.
    pub(super) args: Vec<String>,
    /// What must run, and on which wire.
    pub(super) scenarios: Vec<(String, Wire)>,
}

/// How many scenarios the pinned suite has in each leg. Another number means that the suite was
/// changed, or that its list is written in a form that we no longer read.
const COUNTS: [(&str, usize); 6] = [
    ("required-2025-11-25", 33),
    ("required-2026-07-28", 50),
    ("all", 65),
    ("all-2026-07-28", 40),
    ("client-2025-11-25", 25),
    ("client-2026-07-28", 39),
];

/// The whole: what either revision requires, everything there is, and everything once more on the
/// 2026 wire, because `--suite all` plays a scenario of both revisions on the 2025 wire only. For
/// clients what either revision lists is everything there is, but for skills, which we do not have.
pub(super) fn all(suite: &Suite, scenarios: &[Scenario]) -> Result<Vec<Leg>> {
    let required = |side: Side, wire: Wire| -> Result<Leg> {
        let names = suite.required(side, wire)?;
        let kind = if side == Side::Server { "required" } else { "client" };
        Ok(Leg {
            name: format!("{kind}-{wire}"),
            side,
            args: words(&["--requirements", wire]),
            scenarios: names.into_iter().map(|name| (name, wire)).collect(),
        })
    };
    let of_servers = || scenarios.iter().filter(|scenario| scenario.side == Side::Server);
    let everything = Leg {
        name: "all".to_owned(),
        side: Side::Server,
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
        args: words(&["--suite", "all", "--spec-version", MODERN]),
        scenarios: on_modern.map(|scenario| (scenario.name.clone(), MODERN)).collect(),
    };
    let legs = vec![
        required(Side::Server, LEGACY)?,
        required(Side::Server, MODERN)?,
        everything,
        modern,
        required(Side::Client, LEGACY)?,
        required(Side::Client, MODERN)?,
    ];
    for (leg, (name, count)) in legs.iter().zip(COUNTS) {
        if leg.name != name || leg.scenarios.len() != count {
            let found = leg.scenarios.len();
            bail!(
                "the suite lists {found} scenarios for `{name}`, not {count}; if it was upgraded, correct COUNTS in {}",
                file!()
            );
        }
    }
    Ok(legs)
}

/// One scenario on every wire it has.
pub(super) fn for_one(name: &str, scenarios: &[Scenario]) -> Result<Vec<Leg>> {
    let found = scenarios.iter().find(|scenario| scenario.name == name);
    let scenario = found.with_context(|| {
        let close = scenarios
            .iter()
            .filter(|scenario| scenario.name.contains(name) || name.contains(&scenario.name));
        let close: Vec<&str> = close.map(|scenario| scenario.name.as_str()).collect();
        format!("the suite has no scenario `{name}`; close to it: {}", close.join(", "))
    })?;
    let leg = |wire: Wire, version: &[&str]| Leg {
        name: format!("{}-{wire}", name.replace('/', "-")),
        side: scenario.side,
        args: words(&[&["--scenario", name], version].concat()),
        scenarios: vec![(name.to_owned(), wire)],
    };
    if scenario.revisions.is_empty() {
        // An extension belongs to no revision, so none can be asked for.
        return Ok(vec![leg(scenario.first_wire(), &[])]);
    }
    let wires =
        [LEGACY, MODERN].into_iter().filter(|wire| scenario.revisions.iter().any(|it| it == wire));
    Ok(wires.map(|wire| leg(wire, &["--spec-version", wire])).collect())
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::suite::Scenario;
    use super::{LEGACY, MODERN, for_one};

    #[test]
    fn one_scenario_runs_on_every_wire_it_has() {
        let scenarios = [
            Scenario::new("tools-list", &["2025-06-18", LEGACY, MODERN]),
            Scenario::new("ping", &["2025-06-18", LEGACY]),
            Scenario::new("tasks-lifecycle", &[]),
        ];
        let wires = |name: &str| -> Vec<&str> {
            for_one(name, &scenarios).unwrap().iter().map(|leg| leg.scenarios[0].1).collect()
        };
        assert_eq!(wires("tools-list"), [LEGACY, MODERN]);
        assert_eq!(wires("ping"), [LEGACY]);
        assert_eq!(wires("tasks-lifecycle"), [MODERN]);
        assert!(for_one("tools", &scenarios).unwrap_err().to_string().contains("tools-list"));
    }
}

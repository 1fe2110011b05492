//! Compares the results of a leg with those through the gateway.

use std::collections::BTreeMap;

use super::super::judge::{Outcome, Verdict};
use super::super::results::Status;
use super::super::versions::Wire;

/// Number of checks of one protocol version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) scenarios: usize,
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
}

impl Count {
    fn add(&mut self, verdict: &Verdict) {
        self.scenarios += 1;
        self.passed += verdict.count(Status::Passed);
        self.failed += verdict.count(Status::Failed) + verdict.count(Status::Warned);
        self.skipped += verdict.count(Status::Skipped);
    }
}

/// The results of one protocol version, directly and through the gateway.
pub(super) type Counts = BTreeMap<Wire, [Count; 2]>;

/// Adds the results of a leg.
pub(super) fn count(counts: &mut Counts, direct: &[Verdict], through: &[Verdict]) {
    for (column, verdicts) in [direct, through].into_iter().enumerate() {
        for verdict in verdicts {
            counts.entry(verdict.wire).or_default()[column].add(verdict);
        }
    }
}

/// Scenarios that test nothing through a gateway, and why.
pub(super) const NOT_RELAYED: &[(&str, &str)] = &[(
    "server-sse-polling",
    "its tool closes the stream of the upstream, and the gateway keeps that of its client open",
)];

/// Describes every scenario of a leg that passes directly, and not through the gateway.
pub(super) fn lost(direct: &[Verdict], through: &[Verdict]) -> Vec<String> {
    let passed = direct.iter().filter(|verdict| verdict.outcome == Outcome::Passed);
    let objections = passed.filter_map(|direct| {
        let found = through
            .iter()
            .find(|verdict| verdict.scenario == direct.scenario && verdict.wire == direct.wire);
        match found {
            Some(through) if is_not_relayed(through) => None,
            None => Some(format!("{} ({}) did not run", direct.scenario, direct.wire)),
            Some(through) => through.objection().or_else(|| skipped(direct, through)),
        }
    });
    objections.collect()
}

/// Whether a scenario had nothing to test. If it fails, it is like any other.
fn is_not_relayed(through: &Verdict) -> bool {
    let is_listed = NOT_RELAYED.iter().any(|(scenario, _)| *scenario == through.scenario);
    is_listed && through.outcome == Outcome::Untested
}

/// Describes a scenario that skips checks which run directly.
fn skipped(direct: &Verdict, through: &Verdict) -> Option<String> {
    let [before, after] = [direct, through].map(|verdict| verdict.count(Status::Skipped));
    let Verdict { scenario, wire, .. } = through;
    (after > before).then(|| {
        format!("{scenario} ({wire}) skips {after} checks, and {before} without the gateway")
    })
}

/// The counts as a table.
pub(super) fn table(counts: &Counts) -> String {
    let mut text = String::from(
        "version      scenarios  passed  failed  skipped    through the gateway: passed  failed  skipped\n",
    );
    for (wire, [direct, through]) in counts {
        text += &format!(
            "{wire:<11}  {:>9}  {:>6}  {:>6}  {:>7}  {:>29}  {:>6}  {:>7}\n",
            direct.scenarios,
            direct.passed,
            direct.failed,
            direct.skipped,
            through.passed,
            through.failed,
            through.skipped
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::super::baseline::Baseline;
    use super::super::super::judge;
    use super::super::super::leg::{Leg, Release, Side, Tasks};
    use super::super::super::results::{Check, Results, Status};
    use super::{Counts, NOT_RELAYED, Verdict, count, lost, table};

    fn verdicts(statuses: &[Status]) -> Vec<Verdict> {
        let leg = Leg {
            name: "one".to_owned(),
            side: Side::Server,
            release: Release::Newest,
            tasks: Tasks::Quick,
            args: Vec::new(),
            scenarios: vec![("ping".to_owned(), "2025-11-25")],
        };
        let check =
            |status: &Status| Check { id: "a".to_owned(), status: *status, message: String::new() };
        let results =
            Results::from([("ping".to_owned(), statuses.iter().map(check).collect::<Vec<_>>())]);
        judge::leg(&leg, &results, &Baseline::parse("server: []\n").unwrap())
    }

    #[test]
    fn scenario_that_fails_only_through_gateway_is_lost() {
        let passes = verdicts(&[Status::Passed, Status::Skipped]);
        let fails = verdicts(&[Status::Passed, Status::Failed]);
        assert_eq!(lost(&passes, &passes), Vec::<String>::new());
        assert!(lost(&passes, &fails)[0].contains("ping (2025-11-25) failed"));
        assert_eq!(lost(&fails, &fails), Vec::<String>::new());
        assert!(lost(&passes, &[])[0].contains("did not run"));
    }

    #[test]
    fn scenario_that_skips_checks_only_through_gateway_is_lost() {
        let direct = verdicts(&[Status::Passed, Status::Passed]);
        let through = verdicts(&[Status::Passed, Status::Skipped]);
        assert!(lost(&direct, &through)[0].contains("skips 1 checks, and 0"));
    }

    #[test]
    fn scenario_about_streams_is_not_lost_if_it_tests_nothing() {
        let named = |statuses: &[Status]| {
            let mut verdicts = verdicts(statuses);
            verdicts[0].scenario = NOT_RELAYED[0].0.to_owned();
            verdicts
        };
        let direct = named(&[Status::Passed]);
        assert_eq!(lost(&direct, &named(&[Status::Skipped])), Vec::<String>::new());
        assert_eq!(lost(&direct, &named(&[Status::Failed])).len(), 1);
    }

    #[test]
    fn counts_of_legs_are_added_per_version() {
        let mut counts = Counts::new();
        let (passes, fails) = (verdicts(&[Status::Passed]), verdicts(&[Status::Warned]));
        count(&mut counts, &passes, &fails);
        count(&mut counts, &passes, &passes);
        let [direct, through] = counts["2025-11-25"];
        assert_eq!((direct.passed, direct.failed), (2, 0));
        assert_eq!((through.scenarios, through.passed, through.failed), (2, 1, 1));
        assert_eq!(table(&counts).lines().count(), 2);
    }
}

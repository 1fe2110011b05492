//! Holds results against what should have run and what is known to fail.

use super::baseline::Baseline;
use super::results::{Check, Results, Status};
use super::{leg::Leg, versions::Wire};

/// A scenario that the suite lists and always skips.
const NEVER_TESTED: &[&str] = &["tasks-status-notifications"];

/// Scenarios of extensions that our server and our client have. They skip every check where a peer does not use
/// the extension: a skipped check means that something is not offered.
const OFFERED: &str = "sep-2640-";

/// The check that what we send is well formed. A feature may be missing; bytes may not be wrong.
const WELL_FORMED: &str = "wire-schema-valid";

/// One scenario in one leg.
#[derive(Debug)]
pub(super) struct Verdict {
    pub(super) leg: String,
    pub(super) scenario: String,
    pub(super) wire: Wire,
    pub(super) outcome: Outcome,
    checks: Vec<Check>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Passed,
    /// Failed, as the baseline says it would.
    Known,
    /// Failed or warned, and nobody said it would.
    Failed,
    /// Passed although the baseline says that it fails.
    Stale,
    /// Did not run, or ran and checked nothing.
    Untested,
}

/// Judges every scenario that the leg should have played, and every other that it did play.
pub(super) fn leg(leg: &Leg, results: &Results, baseline: &Baseline) -> Vec<Verdict> {
    let judged = leg.scenarios.iter().map(|(scenario, wire)| {
        let checks = results.get(scenario).cloned().unwrap_or_default();
        let outcome = judge(scenario, &checks, baseline.lists(leg.side, scenario));
        Verdict { leg: leg.name.clone(), scenario: scenario.clone(), wire, outcome, checks }
    });
    let unlisted =
        results.keys().filter(|name| !leg.scenarios.iter().any(|(listed, _)| listed == *name));
    let surprises = unlisted.map(|name| Verdict {
        leg: leg.name.clone(),
        scenario: name.clone(),
        wire: "?",
        outcome: Outcome::Failed,
        checks: results[name].clone(),
    });
    judged.chain(surprises).collect()
}

fn judge(scenario: &str, checks: &[Check], listed: bool) -> Outcome {
    let bad = |check: &&Check| matches!(check.status, Status::Failed | Status::Warned);
    if checks.iter().filter(bad).any(|check| !listed || check.id == WELL_FORMED) {
        return Outcome::Failed;
    }
    let skipped = checks.iter().any(|check| check.status == Status::Skipped);
    if skipped && scenario.starts_with(OFFERED) {
        return Outcome::Untested;
    }
    let failed = checks.iter().any(|check| bad(&check));
    let tested = failed || checks.iter().any(|check| check.status == Status::Passed);
    match (tested, failed, listed) {
        (false, ..) if NEVER_TESTED.contains(&scenario) && !checks.is_empty() => Outcome::Passed,
        (false, ..) => Outcome::Untested,
        (true, true, _) => Outcome::Known,
        (true, false, true) => Outcome::Stale,
        (true, false, false) => Outcome::Passed,
    }
}

impl Verdict {
    /// The suite ended a leg with an error, and no scenario of it shows why.
    pub(super) fn unexplained(leg: &Leg) -> Self {
        let message =
            "the suite is not content, and its results do not say why; see its log".to_owned();
        let check = Check { id: "exit-code".to_owned(), status: Status::Failed, message };
        let scenario = "(the suite itself)".to_owned();
        Self {
            leg: leg.name.clone(),
            scenario,
            wire: "?",
            outcome: Outcome::Failed,
            checks: vec![check],
        }
    }

    pub(super) fn count(&self, status: Status) -> usize {
        self.checks.iter().filter(|check| check.status == status).count()
    }

    /// What is unexpected about it, with the reasons and how to repeat it. Legs overlap, so the
    /// same may be said twice in the same words.
    pub(super) fn objection(&self) -> Option<String> {
        let Self { scenario, wire, leg, .. } = self;
        let what = match self.outcome {
            Outcome::Passed | Outcome::Known => return None,
            Outcome::Failed => "failed".to_owned(),
            Outcome::Stale => "passes; remove it from conformance/baseline.yml".to_owned(),
            Outcome::Untested => format!("did not run or checked nothing in the leg `{leg}`"),
        };
        let mut text = format!("{scenario} ({wire}) {what}");
        for check in self
            .checks
            .iter()
            .filter(|check| matches!(check.status, Status::Failed | Status::Warned))
        {
            let kind = if check.status == Status::Warned { "warning" } else { "failure" };
            text += &format!("\n    {kind} {}: {}", check.id, shortened(&check.message));
        }
        text += &format!("\n    repeat: cargo xtask conformance --scenario {scenario}");
        Some(text)
    }
}

/// As much of a message as helps on a screen; the rest stands in the results.
fn shortened(message: &str) -> String {
    const LENGTH: usize = 300;
    match message.char_indices().nth(LENGTH) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::leg::{Release, Side, Tasks};
    use super::{Baseline, Check, Leg, Outcome, Results, Status, judge, leg};

    fn check(id: &str, status: Status) -> Check {
        Check { id: id.to_owned(), status, message: String::new() }
    }

    #[test]
    fn a_warning_is_a_failure() {
        let checks = [check("a", Status::Passed), check("b", Status::Warned)];
        assert_eq!(judge("ping", &checks, false), Outcome::Failed);
        assert_eq!(judge("ping", &checks, true), Outcome::Known);
        assert_eq!(judge("ping", &checks[..1], false), Outcome::Passed);
    }

    #[test]
    fn a_listed_scenario_that_passes_is_stale() {
        assert_eq!(judge("ping", &[check("a", Status::Passed)], true), Outcome::Stale);
    }

    #[test]
    fn the_baseline_does_not_excuse_malformed_messages() {
        let checks = [check("a", Status::Failed), check("wire-schema-valid", Status::Failed)];
        assert_eq!(judge("ping", &checks, true), Outcome::Failed);
    }

    #[test]
    fn checking_nothing_is_not_passing() {
        assert_eq!(judge("ping", &[], false), Outcome::Untested);
        assert_eq!(judge("ping", &[check("a", Status::Skipped)], false), Outcome::Untested);
        assert_eq!(
            judge("tasks-status-notifications", &[check("a", Status::Skipped)], false),
            Outcome::Passed
        );
        assert_eq!(judge("tasks-status-notifications", &[], false), Outcome::Untested);
        // Well formed, and nothing of what it is about was there.
        let checks = [check("wire-schema-valid", Status::Passed), check("a", Status::Skipped)];
        assert_eq!(judge("sep-2640-skills-manifest", &checks, false), Outcome::Untested);
        assert_eq!(judge("sep-2640-skills-manifest", &checks[..1], false), Outcome::Passed);
    }

    #[test]
    fn what_should_run_and_did_not_is_seen_and_so_is_the_reverse() {
        let scenarios =
            vec![("ping".to_owned(), "2025-11-25"), ("caching".to_owned(), "2026-07-28")];
        let planned = Leg {
            name: "all".to_owned(),
            side: Side::Server,
            release: Release::Newest,
            tasks: Tasks::Quick,
            args: Vec::new(),
            scenarios,
        };
        let played = Results::from([
            ("ping".to_owned(), vec![check("a", Status::Passed)]),
            ("surprise".to_owned(), vec![check("a", Status::Passed)]),
        ]);
        let verdicts = leg(&planned, &played, &Baseline::parse("server: []\n").unwrap());
        let outcomes: Vec<_> =
            verdicts.iter().map(|verdict| (verdict.scenario.as_str(), &verdict.outcome)).collect();
        let expected = [
            ("ping", &Outcome::Passed),
            ("caching", &Outcome::Untested),
            ("surprise", &Outcome::Failed),
        ];
        assert_eq!(outcomes, expected);
    }
}

//! Compares the results with the planned scenarios and the baseline.

use super::baseline::Baseline;
use super::results::{Check, Results, Status};
use super::{leg::Leg, versions::Wire};

/// Scenarios that the suite lists but always skips.
const NEVER_TESTED: &[&str] = &["tasks-status-notifications"];

/// Prefix of extension scenarios that our server and client support. A skipped check in them means
/// a missing feature.
const OFFERED: &str = "sep-2640-";

/// The check that our messages are well-formed. The baseline cannot excuse it.
const WELL_FORMED: &str = "wire-schema-valid";

/// The result of one scenario in one leg.
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
    /// Failed as the baseline expects.
    Known,
    /// Failed or warned unexpectedly.
    Failed,
    /// Passed although the baseline expects a failure.
    Stale,
    /// Did not run, or ran without a check.
    Untested,
}

/// Judges every planned scenario of the leg, and every other one that ran.
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
    /// The suite failed, but no scenario of the leg did.
    pub(super) fn unexplained(leg: &Leg) -> Self {
        let message = "the suite failed, but its results have no failure; see its log".to_owned();
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

    /// The description of an unexpected result, with reasons and the command to repeat it. Legs
    /// overlap, so two results may have the same description.
    pub(super) fn objection(&self) -> Option<String> {
        let Self { scenario, wire, leg, .. } = self;
        let what = match self.outcome {
            Outcome::Passed | Outcome::Known => return None,
            Outcome::Failed => "failed".to_owned(),
            Outcome::Stale => "passes; remove it from conformance/baseline.yml".to_owned(),
            Outcome::Untested => format!("did not run or had no checks in the leg `{leg}`"),
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

/// The start of a message; the results have the whole message.
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
    fn warning_counts_as_failure() {
        let checks = [check("a", Status::Passed), check("b", Status::Warned)];
        assert_eq!(judge("ping", &checks, false), Outcome::Failed);
        assert_eq!(judge("ping", &checks, true), Outcome::Known);
        assert_eq!(judge("ping", &checks[..1], false), Outcome::Passed);
    }

    #[test]
    fn listed_scenario_that_passes_is_stale() {
        assert_eq!(judge("ping", &[check("a", Status::Passed)], true), Outcome::Stale);
    }

    #[test]
    fn malformed_message_is_not_excused_by_baseline() {
        let checks = [check("a", Status::Failed), check("wire-schema-valid", Status::Failed)];
        assert_eq!(judge("ping", &checks, true), Outcome::Failed);
    }

    #[test]
    fn scenario_without_checks_is_untested() {
        assert_eq!(judge("ping", &[], false), Outcome::Untested);
        assert_eq!(judge("ping", &[check("a", Status::Skipped)], false), Outcome::Untested);
        assert_eq!(
            judge("tasks-status-notifications", &[check("a", Status::Skipped)], false),
            Outcome::Passed
        );
        assert_eq!(judge("tasks-status-notifications", &[], false), Outcome::Untested);
        // The messages are well-formed, but every check of the feature was skipped.
        let checks = [check("wire-schema-valid", Status::Passed), check("a", Status::Skipped)];
        assert_eq!(judge("sep-2640-skills-manifest", &checks, false), Outcome::Untested);
        assert_eq!(judge("sep-2640-skills-manifest", &checks[..1], false), Outcome::Passed);
    }

    #[test]
    fn missing_and_unplanned_scenarios_are_reported() {
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

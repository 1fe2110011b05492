//! Guarantees for a call whose client was killed.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::phase::{Phase, is_shown};
use crate::crash::oracle::{Event, Line};

/// A call, the phase of the kill, and the outcome in the second process.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) job: String,
    pub(super) steps: u32,
    pub(super) phase: Phase,
    /// Whether the saved call had neither a handle nor a result.
    pub(super) was_calling: bool,
    pub(super) outcome: Outcome,
}

/// The outcome that the second process reports.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The result of the tool.
    Result(Value),
    /// The call may have been executed.
    Maybe,
}

impl Outcome {
    pub(super) fn read(outcome: Option<&Value>) -> Result<Self> {
        let outcome = outcome.context("the second process left no outcome")?;
        match (outcome["result"].as_str(), outcome.get("maybe")) {
            (Some(report), None) => Ok(Self::Result(serde_json::from_str(report)?)),
            (None, Some(_)) => Ok(Self::Maybe),
            _ => bail!("unknown outcome {outcome}"),
        }
    }
}

/// Checks a run against the guarantees.
pub(super) fn judge(run: &Run, lines: &[Line], has_keys: bool) -> Result<()> {
    let own: Vec<&Line> = lines.iter().filter(|line| line.job == run.job).collect();
    let words = words(&own);
    for step in 0..run.steps {
        let executed = own.iter().filter(|line| is_begun(line, step)).count();
        ensure!(executed <= 1, "step {step} was executed {executed} times");
    }
    ensure!(words.len() <= 1, "its input request got several responses: {words:?}");
    let shown = [".1", ".2"].map(|process| {
        own.iter().filter(|line| is_shown(line) && line.who.ends_with(process)).count()
    });
    ensure!(shown[0] <= 1 && shown[1] <= 1, "one process showed its input request twice");
    // An input request with a saved response is not shown again.
    let was_answered = matches!(run.phase, Phase::Answered | Phase::End);
    ensure!(
        !was_answered || shown[1] == 0,
        "the response was saved, but the input request was shown again"
    );

    let may_be_unknown = !has_keys && run.was_calling && run.phase != Phase::End;
    let Outcome::Result(report) = &run.outcome else {
        ensure!(may_be_unknown, "the outcome is unknown, which this server does not allow");
        ensure!(shown[1] == 0, "an abandoned call showed an input request");
        return Ok(());
    };
    ensure!(!may_be_unknown, "a call that may have been executed was repeated");
    let whose = if was_answered { "1" } else { "2" };
    let word = format!("{}.{whose}", run.job);
    ensure!(report["answer"] == word.as_str(), "the input response of {word} is not in {report}");
    ensure!(words == BTreeSet::from([word.as_str()]), "the tool got {words:?}");
    let steps = report["steps"].as_array().context("a result without steps")?;
    ensure!(steps.len() == run.steps as usize, "{} steps in the result", steps.len());
    for (step, token) in steps.iter().enumerate() {
        let has_run = own.iter().any(|line| match &line.event {
            Event::Begin { step: begun, token: made } => {
                *begun as usize == step && *token == **made
            }
            _ => false,
        });
        ensure!(has_run, "no run has executed step {step} of the result: {token}");
    }
    Ok(())
}

fn is_begun(line: &Line, step: u32) -> bool {
    matches!(line.event, Event::Begin { step: begun, .. } if begun == step)
}

/// The input responses that reached the tool.
fn words<'l>(lines: &[&'l Line]) -> BTreeSet<&'l str> {
    let told = lines.iter().filter_map(|line| match &line.event {
        Event::Other(event) => event.strip_prefix("answered "),
        _ => None,
    });
    told.collect()
}

/// Number of input responses that reached a tool, each counted once.
pub(super) fn answers(runs: &[Run], lines: &[Line]) -> usize {
    let of = |run: &Run| {
        words(&lines.iter().filter(|line| line.job == run.job).collect::<Vec<_>>()).len()
    };
    runs.iter().map(of).sum()
}

/// Number of input requests whose response was lost with the client.
pub(super) fn cut_off(runs: &[Run]) -> usize {
    runs.iter().filter(|run| run.phase == Phase::Shown).count()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Line, Outcome, Phase, Run, judge};

    fn lines(text: &str) -> Vec<Line> {
        text.lines().map(|line| line.trim().parse().unwrap()).collect()
    }

    fn run(phase: Phase, was_calling: bool, outcome: Outcome) -> Run {
        Run { job: "r1".into(), steps: 1, phase, was_calling, outcome }
    }

    fn report(word: &str) -> Outcome {
        Outcome::Result(json!({"answer": word, "steps": ["s#0:0"]}))
    }

    const ONCE: &str = "1 r1.1 r1 shown task
        2 s#0 r1 answered r1.1
        3 s#0 r1 begin 0 s#0:0";

    #[test]
    fn call_answered_and_executed_once_passes() {
        judge(&run(Phase::Answered, false, report("r1.1")), &lines(ONCE), true).unwrap();
    }

    #[test]
    fn repeated_input_or_execution_is_violation() {
        let asked_again = format!("{ONCE}\n4 r1.2 r1 shown task");
        let answered_twice = format!("{ONCE}\n4 s#0 r1 answered r1.2");
        let done_twice = format!("{ONCE}\n4 s#1 r1 begin 0 s#1:0");
        for (text, complaint) in [
            (asked_again, "shown again"),
            (answered_twice, "several responses"),
            (done_twice, "2 times"),
            (ONCE.replace("s#0:0", "s#9:0"), "no run has executed"),
            (ONCE.replace("answered r1.1", "answered x"), "the tool got"),
        ] {
            let found = judge(&run(Phase::Answered, false, report("r1.1")), &lines(&text), true);
            assert!(found.unwrap_err().to_string().contains(complaint), "{complaint}");
        }
    }

    #[test]
    fn unknown_outcome_is_allowed_only_without_keys_and_handle() {
        let begun = "1 s#0 r1 begin 0 s#0:0";
        let maybe = |phase, was_calling| run(phase, was_calling, Outcome::Maybe);
        judge(&maybe(Phase::Sent, true), &lines(begun), false).unwrap();
        judge(&maybe(Phase::Sent, true), &lines(begun), true).unwrap_err();
        judge(&maybe(Phase::Handle, false), &lines(begun), false).unwrap_err();
        let again = run(Phase::Answered, true, report("r1.1"));
        judge(&again, &lines(ONCE), false).unwrap_err();
    }
}
